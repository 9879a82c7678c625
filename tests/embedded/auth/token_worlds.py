"""A namespace with an account, its tokens and everything a token can be bound to."""

import base64
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from applecart.clock import Clock
from applecart.embedded.auth.authenticate import Authenticator, BearerTokens, BootstrapTokens, ClientCertificates
from applecart.embedded.auth.service_account_tokens import Bound, ServiceAccountTokens, legacy_claims_for
from applecart.embedded.auth.token_keys import TokenKeys
from applecart.embedded.auth.untyped import Document
from tests.embedded.auth.objects_in_memory import ObjectsInMemory, plain, pod

ISSUER = "https://kubernetes.default.svc"
KEY = ec.generate_private_key(ec.SECP256R1())


class TokenWorld:
    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.objects = ObjectsInMemory(
            plain("ServiceAccount", "ns", "robot"),
            plain("Node", "", "mac-1"),
            pod("ns", "p", "mac-1", serviceAccountName="robot"),
            plain("Secret", "ns", "s"),
        )
        self.keys = TokenKeys(KEY)
        self.tokens = ServiceAccountTokens(self.keys, ISSUER, self.objects, clock)
        self.bearer = BearerTokens(self.tokens, BootstrapTokens(self.objects, clock))
        self.authenticator = Authenticator(ClientCertificates(clock), self.bearer)

    def bound(self, label: str, namespace: str, name: str) -> Bound:
        found = self.objects.get(label, namespace, name)
        assert found is not None
        return Bound(name, found["metadata"]["uid"])

    @property
    def robot(self) -> Bound:
        return self.bound("serviceaccounts", "ns", "robot")

    def token(
        self, lifetime_s: int = 3600, audiences: tuple[str, ...] = (ISSUER,), bound: Mapping[str, Bound] | None = None
    ) -> str:
        return self.tokens.issue(self.robot, "ns", audiences, lifetime_s, **(bound or {}))

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good claims with some changed; None takes one away."""
        now_s = int(self.clock.now().timestamp())
        good = {
            "iss": ISSUER,
            "sub": "system:serviceaccount:ns:robot",
            "aud": [ISSUER],
            "exp": now_s + 3600,
            "iat": now_s,
            "nbf": now_s,
            "jti": "id",
            "kubernetes.io": {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": self.robot.uid}},
        }
        return {name: value for name, value in {**good, **changes}.items() if value is not None}

    def put_bootstrap_token(self, **changes: str) -> None:
        content = {
            "token-id": "abcdef",
            "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            **changes,
        }
        self.objects.put(secret("kube-system", "bootstrap-token-abcdef", "bootstrap.kubernetes.io/token", content))

    def put_legacy_token(self) -> str:
        token = self.tokens.keys.sign(legacy_claims_for(self.robot, "ns", "old"))
        self.objects.put(secret("ns", "old", "kubernetes.io/service-account-token", {"token": token}))
        return token


def secret(namespace: str, name: str, kind: str, content: dict[str, str]) -> Document:
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in content.items()}
    return plain("Secret", namespace, name, type=kind, data=encoded)
