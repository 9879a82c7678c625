"""Scale: how many replicas an object wants and has, whatever its kind.

The body of the `scale` subresource. Write it as a merge patch of `spec.replicas`: a struct with 0 replicas encodes to nothing.
"""

from applecart.api.meta import Object, Part, Resource


class ScaleSpec(Part):
    replicas: int = 0


class ScaleStatus(Part):
    replicas: int = 0
    selector: str = ""


class Scale(Object):
    """Served as the `scale` subresource of other kinds, never on its own."""

    resource = Resource("autoscaling", "v1", "Scale", "scales")

    spec: ScaleSpec = ScaleSpec()
    status: ScaleStatus = ScaleStatus()
