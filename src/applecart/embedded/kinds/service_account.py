"""How ServiceAccounts behave: references to Secrets are names only."""

from applecart.embedded.kinds.rules import Document, Rules


class ServiceAccountRules(Rules):
    def prepare_create(self, obj: Document) -> None:
        _keep_names(obj)

    def prepare_update(self, obj: Document, old: Document) -> None:
        _keep_names(obj)


def _keep_names(obj: Document) -> None:
    if obj.get("secrets"):
        obj["secrets"] = [{"name": one["name"]} if one.get("name") else {} for one in obj["secrets"]]
