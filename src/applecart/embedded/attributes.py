"""What a request wants, read from its method and path alone.

Authorization decides on these attributes and on nothing else, so they must be derived in one place and before anything of the
body is believed.
"""

import msgspec


class Attributes(msgspec.Struct, frozen=True):
    """One request as authorization sees it."""

    verb: str  # get, list, watch, create, update, patch, delete, deletecollection; in lower case, the method for other paths
    path: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    resource: str = ""  # plural
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    label_selector: str = ""
    field_selector: str = ""
