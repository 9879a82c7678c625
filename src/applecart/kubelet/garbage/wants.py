"""Which image contents some Pods want.

A Pod may name a tag where the store knows digests; comparing the two as texts once deleted the image of every living Pod, pass
after pass. So a tag counts for every digest it may mean: what its VM was made from, what goldens say of it, and what the store
links it to. A tag that leads nowhere yet counts for its whole repository.
"""

from collections.abc import Iterable

import msgspec

from applecart.kubelet.garbage.scene import PodHere, Scene
from applecart.tart.failures import BadImage
from applecart.tart.images import DEFAULT_TAG, ImageRef, parse, repository_of
from applecart.tart.marks import GoldenMark


class Wants(msgspec.Struct, frozen=True):
    digests: frozenset[str]
    repositories: frozenset[str]

    def __contains__(self, digest_name: str) -> bool:
        return digest_name in self.digests or repository_of(digest_name) in self.repositories


def wants(pods: Iterable[PodHere], scene: Scene) -> Wants:
    digests: set[str] = set()
    repositories: set[str] = set()
    for pod in pods:
        found = {pod.digest} if pod.digest else set()
        try:
            ref = parse(pod.image)
        except BadImage:
            pass  # it never had a VM, and never will
        else:
            found |= {ref.digest_name} if ref.digest_name else _meant_by(pod.image, ref, scene)
            if not found:
                repositories.add(ref.repository_name)
        digests |= found
    return Wants(frozenset(digests), frozenset(repositories))


def _meant_by(image: str, ref: ImageRef, scene: Scene) -> set[str]:
    by_mark = {vm.mark.digest for vm in scene.vms if isinstance(vm.mark, GoldenMark) and image in vm.mark.images}
    tag = ref.tag or DEFAULT_TAG
    by_link = {cached.name for cached in scene.images if cached.repository == ref.repository_name and tag in cached.tags}
    return by_mark | by_link
