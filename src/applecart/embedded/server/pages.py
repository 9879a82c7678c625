"""The paths that are no resources: health, metrics, version, discovery, OpenAPI, and the keys of tokens."""

from collections.abc import Callable
from datetime import UTC, timedelta
from email.utils import format_datetime
from functools import partial

from applecart.embedded.auth.service_account_tokens import ServiceAccountTokens
from applecart.embedded.auth.token_keys import CONFIGURATION_PATH, JWKS_PATH, openid_configuration
from applecart.embedded.refusals import method_not_allowed, no_such_resource
from applecart.embedded.schema.budget import spend
from applecart.embedded.server.core import AgentCalls, Core, NoAgents
from applecart.embedded.server.objects import encode
from applecart.embedded.server.representation import in_encoding, sent
from applecart.embedded.server.request import JSON, Answer, ApiRequest
from applecart.embedded.surface import negotiation
from applecart.embedded.surface.discovery import Discovery
from applecart.embedded.surface.openapi_v2 import OpenApiV2
from applecart.embedded.surface.openapi_v3 import PREFIX, OpenApi
from applecart.embedded.surface.served import VIRTUAL_KINDS, version_document
from applecart.observe.metrics import CONTENT_TYPE, Collected, Metrics
from applecart.observe.serve import Check
from applecart.secrets import redact

OPENAPI_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_V2 = "com.github.proto-openapi.spec.v2"
TEXT = "text/plain; charset=utf-8"
HEALTH = ("healthz", "livez", "readyz")
STEPS_OF_A_SAMPLE = 5  # about as many microseconds
KEEP_FOR = timedelta(days=365)  # an address with a hash never answers anything else


class Pages:
    """Documents about the server itself, made again when the set of kinds has changed."""

    def __init__(self, core: Core, tokens: ServiceAccountTokens, address: str, metrics: Metrics | None = None) -> None:
        self._core = core
        self._tokens = tokens
        self._address = address
        self._metrics = metrics
        self.ready: dict[str, Check] = {}  # what must be well besides the server itself
        self._agents: AgentCalls = NoAgents()
        self._made_for: tuple[int, int] = (0, 0)

    def use_agents(self, agents: AgentCalls) -> None:
        self._agents = agents

    def work(self, request: ApiRequest) -> Callable[[], Answer | None]:
        """On the loop: what makes the answer, here or beside it; what may change meanwhile has been looked at."""
        self._renew()
        page, *below = request.path.strip("/").split("/")
        if page in HEALTH:
            health = self._health(page, "/".join(below), is_verbose="verbose" in request.query)
            return lambda: health
        if request.path == "/metrics" and request.method in ("GET", "HEAD") and self._metrics is not None:
            return partial(_shown, self._metrics, self._metrics.collect())
        return partial(self._answer, request)

    def _answer(self, request: ApiRequest) -> Answer | None:
        """None for a path that is nothing."""
        path = request.path.rstrip("/") or "/"
        parts = path.strip("/").split("/")
        if request.method not in ("GET", "HEAD"):
            if parts[0] in ("api", "apis", "version"):
                raise method_not_allowed()
            return None
        match parts:
            case ["version"]:
                return sent(version_document(), request.accept)
            case ["api"]:
                return self._discovered(request, is_core=True)
            case ["apis"]:
                return self._discovered(request, is_core=False)
            case ["api", version]:
                return self._document(request, self._discovery.resource_list("", version), "")
            case ["apis", group]:
                return self._document(request, self._discovery.group(group), group, is_named=False)
            case ["apis", group, version]:
                return self._document(request, self._discovery.resource_list(group, version), group)
            case ["openapi", "v2"]:
                return self._openapi_v2_document(request)
            case ["openapi", "v3"]:
                return Answer(200, self._openapi.index(), TEXT)  # as the real server calls it, although it is JSON
            case ["openapi", "v3", *_]:
                return self._openapi_v3_document(request, path.removeprefix(PREFIX + "/"))
        if path == JWKS_PATH:
            return Answer(200, encode(self._tokens.keys.jwks()), "application/jwk-set+json")
        if path == CONFIGURATION_PATH:
            return Answer(200, encode(openid_configuration(self._tokens.issuer, f"https://{self._address}")))
        return None

    def _health(self, page: str, named: str, *, is_verbose: bool) -> Answer | None:
        """All checks, or one of them: only that tells why it fails, because strangers read the others."""
        checks = {"ping": None, "store": "it cannot be written" if self._core.store.failure else None}
        if page == "readyz":
            checks["tasks"] = self._core.background.down()
            checks |= {name: check() for name, check in self.ready.items()}
        if named and named not in checks:
            return None
        is_well = not any(checks.values())
        if named and (because := checks[named]):
            return Answer(500, f"internal server error: {redact(because)}\n".encode(), TEXT)
        if named or (is_well and not is_verbose):
            return Answer(200, b"ok", TEXT)
        lines = [f"[-]{name} failed: reason withheld" if because else f"[+]{name} ok" for name, because in checks.items()]
        lines.append(f"{page} check {'passed' if is_well else 'failed'}\n")
        return Answer(200 if is_well else 500, "\n".join(lines).encode(), TEXT)

    def _renew(self) -> None:
        """Kinds come and go on the loop; answers themselves may be made beside it."""
        computed = self._agents.kinds
        wanted = (self._core.registry.edition, len(computed))
        if wanted == self._made_for:
            return
        kinds = [*self._core.registry.kinds(), *VIRTUAL_KINDS, *computed]
        self._discovery = Discovery(kinds)
        self._openapi = OpenApi(kinds, lambda kind: getattr(kind, "schema", None), getattr(self, "_openapi", None))
        self._openapi_v2 = OpenApiV2(kinds, lambda kind: getattr(kind, "schema", None), getattr(self, "_openapi_v2", None))
        self._made_for = wanted

    def _discovered(self, request: ApiRequest, *, is_core: bool) -> Answer:
        wanted = negotiation.choose_discovery(request.accept)
        if wanted.shape == "legacy":
            document = self._discovery.core_versions(self._address) if is_core else self._discovery.group_list()
            return Answer(200, in_encoding(encode(document), wanted.media_type), wanted.media_type)
        found = self._discovery.aggregated(wanted, is_core=is_core)
        headers = {name: value for name, value in found.headers.items() if name != "Content-Type"}
        if found.is_known(request.headers.get("if-none-match")):
            return Answer(304, b"", "", headers)  # clients keep the content type of the answer they have
        return Answer(200, in_encoding(found.body, wanted.media_type), found.content_type, headers)

    def _document(
        self, request: ApiRequest, document: dict[str, object] | None, group: str, *, is_named: bool = True
    ) -> Answer | None:
        if document is not None:
            return sent(document, request.accept)
        if is_named and self._core.registry.is_builtin_group(group):
            raise no_such_resource()  # the group is there, this version of it is not
        return None

    def _openapi_v2_document(self, request: ApiRequest) -> Answer:
        clauses = negotiation.read_accept(request.accept) if request.accept else ()
        if any(clause.type == "application" and clause.subtype.startswith(PROTOBUF_V2) for clause in clauses):
            # Empty, and no 406: kubectl asks so when a kind is unknown, and would then speak of OpenAPI instead.
            return Answer(200, b"", OPENAPI_V2)
        if clauses and not any(clause.takes(JSON) for clause in clauses):
            return Answer(406, b"", "", {"Vary": "Accept"})
        body, etag = self._openapi_v2.document()
        headers = {"ETag": etag, "Vary": "Accept"}
        if request.headers.get("if-none-match") == etag:
            return Answer(304, b"", "", headers)
        return Answer(200, body, JSON, headers)

    def _openapi_v3_document(self, request: ApiRequest, path: str) -> Answer | None:
        found = self._openapi.document(path)
        if found is None:
            return None
        if request.accept and not any(clause.takes(JSON) for clause in negotiation.read_accept(request.accept)):
            return Answer(406, b"", TEXT, {"Vary": "Accept"})
        body, digest = found
        headers = {"ETag": f'"{digest}"', "Vary": "Accept"}
        asked = request.query.get("hash")
        if asked and asked != digest:
            return Answer(301, b"", JSON, {**headers, "Location": self._openapi.address(path)})
        if asked:
            headers["Cache-Control"] = "public, immutable"
            headers["Expires"] = format_datetime((self._core.clock.now() + KEEP_FOR).astimezone(UTC), usegmt=True)
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Answer(304, b"", JSON, headers)
        return Answer(200, body, JSON, headers)


def _shown(metrics: Metrics, collected: Collected) -> Answer:
    spend(STEPS_OF_A_SAMPLE * collected.samples)
    return Answer(200, metrics.render(collected), CONTENT_TYPE)
