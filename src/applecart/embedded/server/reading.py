"""GET of one object, of a collection, and watches."""

from applecart.api.meta import Key
from applecart.embedded.kinds.kind import Kind
from applecart.embedded.refusals import bad_request, not_found
from applecart.embedded.server import listing, watching
from applecart.embedded.server.core import Core
from applecart.embedded.server.listing import Selection
from applecart.embedded.server.representation import Forms
from applecart.embedded.server.request import Answer, ApiRequest, StreamAnswer, revision


async def get(core: Core, request: ApiRequest, kind: Kind, key: Key) -> Answer:
    forms = Forms(core, request, kind)
    _refuse_future(core, request)
    record = core.store.table(kind.storage.label).get(key)
    if record is None:
        raise not_found(kind.resource, key.name)
    return forms.one(record)


async def list_(core: Core, request: ApiRequest, kind: Kind, namespace: str | None) -> Answer | StreamAnswer:
    forms = Forms(core, request, kind, is_list=True)
    options = listing.read_options(request.query)
    selection = Selection(kind, namespace, request.query)
    return forms.list(await listing.page(core, kind, selection.namespace, options, selection))


async def watch(core: Core, request: ApiRequest, kind: Kind, namespace: str | None) -> StreamAnswer:
    forms = Forms(core, request, kind, is_watch=True)
    options = watching.read_options(request.query)
    selection = Selection(kind, namespace, request.query)
    return StreamAnswer(watching.stream(core, kind, selection, options, forms.watch()))


def _refuse_future(core: Core, request: ApiRequest) -> None:
    """Who asks for a state at least as new as some revision must not get an older one."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return
    try:
        asked = revision(text)
    except ValueError as error:
        raise bad_request(f'resourceVersion: Invalid value: "{text}": {error}') from None
    if asked > core.store.revision:
        raise listing.too_large(asked, core.store.revision)
