"""Ada's half of the example, through supabase-py: she signs up, makes a project and fills it.

`app.py write` does that; `app.py read` comes back later and reads what others made of it.
"""

from __future__ import annotations

import os
import sys

from postgrest.exceptions import APIError
from supabase import Client, create_client

EMAIL, PASSWORD = "ada@example.test", "analytical-engine"


def say(what: str, value: object) -> None:
    print(f"  py  {what:<32} {value}")


def connect() -> Client:
    return create_client(os.environ["SUPABASE_URL"], os.environ["SUPABASE_ANON_KEY"])


def write(supabase: Client) -> None:
    tips = supabase.table("tips").select("body").order("id", desc=True).limit(1).execute()
    say("a visitor reads a tip", tips.data[0]["body"])
    say("and sees no todos", supabase.table("todos").select("*").execute().data)

    supabase.auth.sign_up({"email": EMAIL, "password": PASSWORD, "options": {"data": {"name": "Ada"}}})
    supabase.auth.sign_out()
    supabase.auth.sign_in_with_password({"email": EMAIL, "password": PASSWORD})
    user = supabase.auth.get_user()
    say("signed in as", user.user.email if user else "nobody")
    say("profile, made by a trigger", supabase.table("profiles").select("name").single().execute().data)

    project = supabase.table("projects").insert({"name": "Move house"}).execute().data[0]
    todos = [
        {"project_id": project["id"], "title": "Pack books", "priority": 4, "due": "2026-12-10"},
        {"project_id": project["id"], "title": "Call the movers", "priority": 1, "due": "2026-12-01"},
        {"project_id": project["id"], "title": "Sell the piano", "priority": 2, "due": None},
        {"project_id": project["id"], "title": "Water plants", "priority": 5, "due": None},
    ]
    say("inserted", [row["title"] for row in supabase.table("todos").insert(todos).execute().data])

    done = supabase.table("todos").update({"is_done": True}).eq("title", "Call the movers").execute()
    say("updated", [(row["title"], row["is_done"]) for row in done.data])
    again = [
        {"project_id": project["id"], "title": "Pack books", "priority": 2, "due": "2026-12-05"},
        {"project_id": project["id"], "title": "Hand over the keys", "priority": 1, "due": "2026-12-20"},
    ]
    upserted = supabase.table("todos").upsert(again, on_conflict="project_id,title").execute()
    say("upserted", [(row["title"], row["priority"]) for row in upserted.data])
    gone = supabase.table("todos").delete().eq("title", "Water plants").execute()
    say("deleted", [row["title"] for row in gone.data])

    urgent = (
        supabase.table("todos")
        .select("title, due, project:projects(name)")
        .is_("is_done", False)
        .lte("priority", 2)
        .order("due", desc=False, nullsfirst=False)
        .limit(2)
        .execute()
    )
    for row in urgent.data:
        say("urgent", f"{row['title']} ({row['project']['name']}), due {row['due']}")
    say("progress, by rpc", supabase.rpc("progress", {"project": project["id"]}).execute().data[0])
    try:
        supabase.table("todos").insert({"project_id": project["id"], "title": ""}).execute()
    except APIError as error:
        say("an empty title is refused", error.code)
    supabase.auth.sign_out()


def read(supabase: Client) -> None:
    supabase.auth.sign_in_with_password({"email": EMAIL, "password": PASSWORD})
    rows = (
        supabase.table("todos")
        .select("title, is_done, author:profiles(name), project:projects!inner(name)")
        .eq("projects.name", "Move house")
        .order("title")
        .execute()
    )
    for row in rows.data:
        mark = "x" if row["is_done"] else " "
        say(f"[{mark}] by {row['author']['name']}", row["title"])
    supabase.auth.sign_out()
    say("after signing out", supabase.table("todos").select("title").execute().data)


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](connect())
