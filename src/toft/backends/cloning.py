"""A backend's folder, with a copy of a template in it. Runs in a job process."""

from __future__ import annotations

import os

from toft.backends.chores import CloneTemplate
from toft.backends.identity import make_secrets
from toft.engine.capture import link_objects
from toft.engine.clone import clone
from toft.engine.template import OBJECTS, Template, load_template, verify
from toft.errors.engine import TemplateFailed
from toft.host.files import remove_tree
from toft.protocol.worker import Secrets
from toft.world import SystemClock, SystemEntropy

_known: dict[str, Template] = {}


def clone_template(chore: CloneTemplate) -> Secrets:
    """Make the folder, and secrets for the backend. Raises `DiskFull`, `TemplateFailed`, OSError."""
    template = _known.get(chore.key)
    if template is None or not template.path.exists():
        template = _known[chore.key] = _load(chore)
    remove_tree(chore.folder)  # what an attempt that was cut off has left
    chore.folder.mkdir(mode=0o711)
    chore.folder.chmod(0o711)  # its user passes through to `pgdata`; nobody lists it
    secrets = chore.secrets or make_secrets(SystemEntropy(), SystemClock())
    clone(template, chore.folder / "pgdata", chore.uid, secrets.passwords)
    objects = chore.folder / "objects"
    brought = template.path.parent / OBJECTS
    if brought.is_dir():
        link_objects(brought, objects)
    else:
        objects.mkdir(mode=0o700)
    if chore.objects_uid is not None:
        # files are shared with the template and readable; who may enter their folders may read them
        for folder in (objects, *(path for path in objects.rglob("*") if path.is_dir())):
            os.chown(folder, chore.objects_uid, chore.objects_uid)
    return secrets


def _load(chore: CloneTemplate) -> Template:
    """The template, read once in full: a disk that has changed it must not do so unseen."""
    template = load_template(chore.templates, chore.key)
    if template is None:
        raise TemplateFailed(engine=chore.key, cause="it is not there any more")
    if not verify(template):
        raise TemplateFailed(engine=chore.key, cause="its bytes are not those that were written")
    return template
