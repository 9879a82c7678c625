"""core/v1 Event: what happened to an object, for a person who runs `kubectl describe`.

Repeats are folded into one Event: `count` and `last_timestamp` as kubectl shows them, `series` as the newer API counts them.
The text of an Event never holds a secret (I9); the recorder in `applecart.kube` sees to that.
"""

from datetime import datetime

from applecart.api.meta import Object, Part, Resource
from applecart.api.pods import ObjectReference

NORMAL = "Normal"
WARNING = "Warning"


class EventSource(Part):
    component: str = ""
    host: str = ""


class EventSeries(Part):
    count: int = 0
    last_observed_time: str = ""  # MicroTime, see meta.micro_time


class Event(Object, kw_only=True):
    resource = Resource("", "v1", "Event", "events")

    involved_object: ObjectReference
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: str | None = None  # MicroTime, see meta.micro_time
    series: EventSeries | None = None
    source: EventSource | None = None
    action: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
