"""From a request to a recipe."""

from __future__ import annotations

from toft.backends.recipe import Question, Step, make_recipe, question_of
from toft.ids import TemplateKey
from toft.protocol.lease import CreateLease
from toft.protocol.worker import ServiceSettings


def test_ports_times_and_labels_do_not_matter() -> None:
    """Requests that differ only in what is no part of the database have one recipe."""
    one = CreateLease(version="1", project="p", ttl_seconds=5, label="a", http_port=1, hold=True)
    two = CreateLease(version="1", project="p")
    assert question_of(one) == question_of(two) == Question(project="p")


def test_options_matter_only_with_a_project() -> None:
    """An empty backend is the same, whatever was said about migrations."""
    assert question_of(CreateLease(version="1", no_seed=True, migrations_dir="x")) == Question()
    assert question_of(CreateLease(version="1", project="p", no_seed=True)).no_seed


def test_the_last_step_names_the_template() -> None:
    """A project's template is the end of its chain; without steps it is the base template."""
    base = TemplateKey("base-1")
    steps = (Step(TemplateKey("one"), "1.sql"), Step(TemplateKey("two"), "2.sql"))
    project = make_recipe("18", base, steps, ServiceSettings(), ("note",))
    assert (project.key, project.kind) == ("two", "project")
    empty = make_recipe("18", base, (), ServiceSettings(), ())
    assert (empty.key, empty.kind) == ("base-1", "base")
