"""`toft mail list|show|wait|links`: what a lease's Auth would have sent."""

from __future__ import annotations

from toft.cli.argv import Flag, Usage
from toft.cli.commands.user import LEASE
from toft.cli.leases import show_lease
from toft.client.mailbox import Mail, Mailbox
from toft.errors.daemon import UsageError
from toft.protocol import environment
from toft.settings import parse_seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toft.cli.context import Context


def list_all(context: Context) -> int:
    """Summaries, newest first."""
    to = context.arguments.get("to")
    query = " ".join(word for word in (f'to:"{to}"' if to else "", context.arguments.get("query")) if word)
    mails = _mailbox(context).list(query)
    if context.show.is_json:
        context.show.data({"messages": mails})
    elif not mails:
        context.show.note("no mail")
    else:
        rows = [[mail["ID"], mail["To"][0]["Address"], mail["Created"], mail["Subject"]] for mail in mails]
        context.show.table(["MAIL", "TO", "CAME", "SUBJECT"], rows)
    return 0


def show(context: Context) -> int:
    """One mail, the newest unless another is named."""
    _print(context, _read(context))
    return 0


def wait(context: Context) -> int:
    """The next mail to an address."""
    arguments = context.arguments
    mail = _mailbox(context).wait(
        arguments.operands[0],
        timeout=_seconds(context),
        subject=arguments.get("subject") or "",
        after=arguments.get("after") or "",
    )
    _print(context, mail)
    return 0


def links(context: Context) -> int:
    """The links in a mail."""
    mail = _read(context)
    if context.show.is_json:
        context.show.data({"links": mail.links, "codes": mail.codes})
    else:
        context.show.text("".join(f"{link}\n" for link in mail.links))
    return 0


def _seconds(context: Context) -> int:
    try:
        return parse_seconds(context.arguments.get("timeout") or "10s")
    except ValueError as error:
        raise UsageError(command=context.usage.name, cause=f"`--timeout`: {error}") from None


def _read(context: Context) -> Mail:
    return _mailbox(context).read((context.arguments.operands or ["latest"])[0])


def _mailbox(context: Context) -> Mailbox:
    lease = show_lease(context, context.daemon(), context.arguments.get("lease"))
    return Mailbox(environment.variables(lease)["TOFT_MAIL_URL"])


def _print(context: Context, mail: Mail) -> None:
    if context.show.is_json:
        context.show.data({**mail.members, "Code": mail.code, "Link": mail.link})
        return
    facts = [("mail", mail.id), ("to", mail.to), ("subject", mail.subject)]
    facts += [("code", mail.code)] if mail.code else []
    facts += [("link", mail.link)] if mail.link else []
    context.show.facts(facts)
    context.show.text(f"\n{mail.text.rstrip()}\n")


USAGE = {
    "list": (
        Usage(
            "toft mail list",
            "List the mails that came, newest first.",
            (
                Flag("to", "Only those to this address.", "EMAIL"),
                Flag("query", "Only those that Mailpit's search would find.", "TEXT"),
                LEASE,
            ),
            examples=("toft mail list --query 'subject:reset -to:bob'",),
        ),
        list_all,
    ),
    "show": (
        Usage("toft mail show", "Show a mail with its code and link; the newest if none is named.",
              (LEASE,), "[MAIL]", most=1),
        show,
    ),
    "wait": (
        Usage(
            "toft mail wait",
            "Show the newest mail to an address, waiting for it to come.",
            (
                Flag("timeout", "How long to wait (10s).", "TIME"),
                Flag("subject", "Words of its subject.", "TEXT"),
                Flag("after", "The id of a mail: it and those before it do not count.", "MAIL"),
                LEASE,
            ),
            "EMAIL",
            least=1,
            most=1,
            examples=("toft mail wait ada@example.com --json",),
        ),
        wait,
    ),
    "links": (
        Usage("toft mail links", "Print the links in a mail; the newest if none is named.",
              (LEASE,), "[MAIL]", most=1),
        links,
    ),
}  # fmt: skip
