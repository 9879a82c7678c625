"""An agent's no to a reader of logs, as the real server tells it.

Of most answers only the code goes on; the agent's own text does with a bad request, a 403 and a failure of the agent.
"""

from applecart.embedded.field_errors import quoted
from applecart.embedded.refusals import Refusal
from applecart.embedded.relay.agents import AgentRefused

ABOUT = "pods/log"
_KNOWN = {
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def refusal_of(refused: AgentRefused, pod: str) -> Refusal:
    if refused.status == 400:
        return Refusal(400, "BadRequest", refused.text)
    if refused.status == 500:
        causes = {"causes": [{"message": refused.text}]}
        return Refusal(500, "InternalError", f"Internal error occurred: {refused.text}", causes)
    reason, words = _words(refused)
    return Refusal(refused.status, reason, f"{words} ( {ABOUT} {pod})", {"name": pod, "kind": ABOUT})


def _words(refused: AgentRefused) -> tuple[str, str]:
    if refused.status in _KNOWN:
        return _KNOWN[refused.status]
    if refused.status == 403:
        return "Forbidden", refused.text
    if refused.status >= 500:
        return "InternalError", f"an error on the server ({quoted(refused.text)}) has prevented the request from succeeding"
    return "", f"the server responded with the status code {refused.status} but did not return more information"
