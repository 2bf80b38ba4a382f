// Bob's half of the example, through supabase-js: he joins Ada's project and works on it.
import { createClient } from "@supabase/supabase-js";

const connect = () =>
  createClient(process.env.SUPABASE_URL, process.env.SUPABASE_ANON_KEY, {
    auth: { persistSession: false, autoRefreshToken: false },
  });

const say = (what, value) =>
  console.log(`  js  ${what.padEnd(32)} ${typeof value === "string" ? value : JSON.stringify(value)}`);

/** The data of an answer; an error ends the program. */
const need = ({ data, error }) => {
  if (error) throw new Error(`${error.code}: ${error.message}`);
  return data;
};

const ada = connect();
const bob = connect();

need(await bob.auth.signUp({ email: "bob@example.test", password: "bicycle-repair", options: { data: { name: "Bob" } } }));
need(await bob.auth.signInWithPassword({ email: "bob@example.test", password: "bicycle-repair" }));
const { user } = need(await bob.auth.getUser());
say("signed in as", user.email);
say("Bob sees of Ada's todos", need(await bob.from("todos").select()));

need(await ada.auth.signInWithPassword({ email: "ada@example.test", password: "analytical-engine" }));
const project = need(await ada.from("projects").select("id, name").eq("name", "Move house").single());
say("Ada finds her project", project.name);
need(await ada.from("members").upsert({ project_id: project.id, profile_id: user.id, may_write: false }));

const open = need(
  await bob
    .from("todos")
    .select("title, priority, project:projects(name)")
    .eq("is_done", false)
    .in("priority", [1, 2])
    .order("priority")
    .order("title")
    .limit(3),
);
for (const todo of open) say("Bob reads now", `${todo.title} (${todo.project.name})`);

const refused = await bob.from("todos").insert({ project_id: project.id, title: "Borrow a van" });
say("but may not write", refused.error.code);

need(await ada.from("members").update({ may_write: true }).eq("profile_id", user.id));
say("until Ada lets him", need(await bob.from("todos").insert({ project_id: project.id, title: "Borrow a van" }).select("title").single()));
say("updated", need(await bob.from("todos").update({ is_done: true }).eq("title", "Pack books").select("title, is_done")));
say("upserted", need(await bob.from("todos").upsert({ project_id: project.id, title: "Borrow a van", priority: 1 }, { onConflict: "project_id,title" }).select("title, priority")));
say("deleted", need(await bob.from("todos").delete().eq("title", "Sell the piano").select("title")));
say("progress, by rpc", need(await bob.rpc("progress", { project: project.id }).single()));

need(await bob.auth.signOut());
need(await ada.auth.signOut());
say("after signing out", need(await bob.from("todos").select("title")));
