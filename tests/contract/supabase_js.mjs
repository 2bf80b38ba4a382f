// Drives supabase-js against a backend and prints what it got as JSON. See test_supabase_js.py.
// node supabase_js.mjs PACKAGE_JSON URL PUBLISHABLE_KEY SECRET_KEY
import { createRequire } from 'node:module'

const [packageJson, url, publishableKey, secretKey] = process.argv.slice(2)
const { createClient } = createRequire(packageJson)('@supabase/supabase-js')
const make = (key) => createClient(url, key, { auth: { persistSession: false, autoRefreshToken: false } })
const admin = make(secretKey)
const client = make(publishableKey)

// Which methods of the builders were called: each is wrapped once.
const called = new Set()
const known = new Set()
const watch = (object) => {
  for (let at = Object.getPrototypeOf(object); at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    if (at === null || Object.hasOwn(at, '__watched')) continue
    Object.defineProperty(at, '__watched', { value: true })
    for (const name of Object.getOwnPropertyNames(at)) {
      const method = at[name]
      if (typeof method !== 'function' || name === 'constructor' || name.startsWith('_')) continue
      known.add(name)
      at[name] = function (...words) {
        called.add(name)
        return method.apply(this, words)
      }
    }
  }
}
const things = () => admin.from('things')
watch(things())
watch(things().select())

// name → what is asked, and the condition that finds the same rows in SQL
const reads = {
  eq: [(q) => q.eq('id', 1), 'id = 1'],
  neq: [(q) => q.neq('id', 1), 'id <> 1'],
  gt: [(q) => q.gt('id', 1), 'id > 1'],
  gte: [(q) => q.gte('id', 2), 'id >= 2'],
  lt: [(q) => q.lt('id', 2), 'id < 2'],
  lte: [(q) => q.lte('id', 2), 'id <= 2'],
  like: [(q) => q.like('name', '%a'), "name like '%a'"],
  likeAllOf: [(q) => q.likeAllOf('name', ['A%', '%a']), "name like all ('{A%,%a}')"],
  likeAnyOf: [(q) => q.likeAnyOf('name', ['A%', 'b%']), "name like any ('{A%,b%}')"],
  ilike: [(q) => q.ilike('name', 'a%'), "name ilike 'a%'"],
  ilikeAllOf: [(q) => q.ilikeAllOf('name', ['a%', '%A']), "name ilike all ('{a%,%A}')"],
  ilikeAnyOf: [(q) => q.ilikeAnyOf('name', ['a%', 'B%']), "name ilike any ('{a%,B%}')"],
  regexMatch: [(q) => q.regexMatch('name', '^A'), "name ~ '^A'"],
  regexIMatch: [(q) => q.regexIMatch('name', '^a'), "name ~* '^a'"],
  is: [(q) => q.is('name', null), 'name is null'],
  isDistinct: [(q) => q.isDistinct('name', 'beta'), "name is distinct from 'beta'"],
  in: [(q) => q.in('name', ['Alpha', 'q"u,ote']), "name in ('Alpha', 'q\"u,ote')"],
  notIn: [(q) => q.notIn('id', [1, 3]), 'id not in (1, 3)'],
  contains: [(q) => q.contains('tags', ['b']), "tags @> '{b}'"],
  'contains, json': [(q) => q.contains('document', { k: 1 }), 'document @> \'{"k": 1}\''],
  containedBy: [(q) => q.containedBy('tags', ['a', 'b', 'z']), "tags <@ '{a,b,z}'"],
  overlaps: [(q) => q.overlaps('tags', ['c', 'z']), "tags && '{c,z}'"],
  rangeGt: [(q) => q.rangeGt('span', '(4,6)'), "span >> '(4,6)'"],
  rangeGte: [(q) => q.rangeGte('span', '[5,9)'), "span &> '[5,9)'"],
  rangeLt: [(q) => q.rangeLt('span', '[10,15)'), "span << '[10,15)'"],
  rangeLte: [(q) => q.rangeLte('span', '[1,9)'), "span &< '[1,9)'"],
  rangeAdjacent: [(q) => q.rangeAdjacent('span', '[9,12)'), "span -|- '[9,12)'"],
  textSearch: [(q) => q.textSearch('words', 'cat'), "words @@ to_tsquery('cat')"],
  'textSearch, websearch': [
    (q) => q.textSearch('words', 'cat or dog', { type: 'websearch', config: 'english' }),
    "words @@ websearch_to_tsquery('english', 'cat or dog')",
  ],
  'textSearch, phrase': [
    (q) => q.textSearch('words', 'fat cats', { type: 'phrase' }),
    "words @@ phraseto_tsquery('fat cats')",
  ],
  match: [(q) => q.match({ id: 2, name: 'beta' }), "id = 2 and name = 'beta'"],
  not: [(q) => q.not('name', 'is', null), 'name is not null'],
  or: [(q) => q.or('id.eq.1,and(id.gt.1,name.is.null)'), 'id = 1 or (id > 1 and name is null)'],
  filter: [(q) => q.filter('id', 'in', '(1,2)'), 'id in (1, 2)'],
  'order, limit': [(q) => q.order('id', { ascending: false }).limit(1), 'id = 3'],
  'order, nulls first': [(q) => q.order('name', { nullsFirst: true }).limit(1), 'id = 3'],
  range: [(q) => q.order('id').range(1, 2), 'id in (2, 3)'],
  'json path': [(q) => q.eq('document->>k', '2'), "document->>'k' = '2'"],
}

const told = { reads: {}, shapes: {}, writes: {}, calls: {}, absent: {} }
const tell = ({ data, error, count, status }) => ({
  data, count, status, error: error && { code: error.code, message: error.message, hint: error.hint },
}) // prettier-ignore
for (const [name, [ask, sql]] of Object.entries(reads)) {
  const { data, error } = await ask(things().select('id'))
  told.reads[name] = { sql, ids: data?.map((row) => row.id).sort(), error }
}

const one = () => things().select('name').eq('id', 1)
told.shapes = {
  single: tell(await one().single()),
  'single of three': tell(await things().select('name').single()),
  maybeSingle: tell(await things().select('name').eq('id', 9).maybeSingle()),
  csv: tell(await things().select('id').lte('id', 2).order('id').csv()),
  geojson: tell(await one().geojson()),
  explain: tell(await one().explain({ analyze: true, format: 'json' })),
  stripNulls: tell(await things().select('id,name').eq('id', 3).stripNulls()),
  count: tell(await things().select('id', { count: 'exact' }).limit(1)),
  head: tell(await things().select('*', { count: 'exact', head: true })),
  embed: tell(
    await things()
      .select('id,parts(label)')
      .order('label', { referencedTable: 'parts', ascending: false })
      .limit(1, { referencedTable: 'parts' })
      .eq('id', 1)
      .returns()
      .overrideTypes()
  ),
  spread: tell(await admin.from('parts').select('id,...things(name)').order('id').limit(1)),
  setHeader: tell(await one().setHeader('x-own', 'y').retry(false)),
  unknown: tell(await admin.from('thing').select()),
  'not exposed': tell(await admin.schema('auth').from('users').select('id')),
  anon: tell(await client.from('things').select()),
}
const gone = new AbortController()
gone.abort()
told.shapes.aborted = tell(await one().abortSignal(gone.signal))
told.shapes.thrown = await admin.from('nothing').select().throwOnError().then(
  () => null,
  (error) => error.code
) // prettier-ignore

const parts = () => admin.from('parts')
told.writes = {
  insert: tell(await parts().insert({ id: 10, label: 'n' })),
  'insert, select': tell(await parts().insert([{ id: 11, label: 'a' }, { id: 12 }]).select('id,label')),
  'insert, defaults': tell(
    await parts().insert([{ id: 13, label: 'a' }, { id: 14 }], { defaultToNull: false, count: 'exact' }).select()
  ),
  upsert: tell(await parts().upsert({ id: 10, label: 'm' }).select().single()),
  'upsert, ignore': tell(
    await parts().upsert({ id: 10, label: 'never' }, { onConflict: 'id', ignoreDuplicates: true }).select()
  ),
  update: tell(await parts().update({ label: 'u' }).in('id', [10, 11]).select('label')),
  'update, no filter': tell(await parts().update({ label: 'all' })),
  maxAffected: tell(await parts().delete().gt('id', 9).maxAffected(1)),
  rollback: tell(await parts().delete().eq('id', 14).rollback().select('id')),
  delete: tell(await parts().delete({ count: 'exact' }).gt('id', 9).lt('id', 14)),
  'delete, no filter': tell(await parts().delete()),
}

told.calls = {
  rpc: tell(await admin.rpc('twice', { n: 4 })),
  'rpc, get': tell(await admin.rpc('twice', { n: 5 }, { get: true })),
  'rpc, rows': tell(await admin.rpc('things_named', { prefix: 'a' }).select('id,parts(id)')),
  'rpc, head': tell(await admin.rpc('things_named', { prefix: '' }, { head: true, count: 'exact' })),
  'rpc, array': tell(await admin.rpc('sum_of', { numbers: [1, 2, 3] }, { get: true })),
  'rpc, unknown': tell(await admin.rpc('nothing')),
}

// Services that are not here.
const { data, error } = await client.functions.invoke('hello', { body: { name: 'x' } })
told.absent.functions = { data, name: error.name, status: error.context.status, body: await error.context.json() }
const answer = await fetch(`${url}/graphql/v1`, {
  method: 'POST',
  headers: { apikey: publishableKey, 'content-type': 'application/json' },
  body: JSON.stringify({ query: '{ __typename }' }),
})
told.absent.graphql = { status: answer.status, body: await answer.json() }

// Time goes ten times as fast for what tries again.
const { setTimeout: slowly } = globalThis
globalThis.setTimeout = (work, delay, ...words) => slowly(work, (delay ?? 0) / 10, ...words)
let opened = 0
const Socket = globalThis.WebSocket
globalThis.WebSocket = class extends Socket {
  constructor(...words) {
    super(...words)
    opened += 1
  }
}
const live = make(publishableKey)
const states = []
const channel = live.channel('room').on('postgres_changes', { event: '*', schema: 'public', table: 'things' }, () => {})
await new Promise((resolve) => {
  channel.subscribe((state, problem) => {
    states.push([state, problem?.message ?? null])
    if (state === 'CLOSED') resolve()
  })
})
// Longer than the first two tries of a client that would go on trying.
await new Promise((resolve) => setTimeout(resolve, 4000))
told.absent.realtime = { states, opened, left: await live.removeAllChannels() }

told.uncalled = [...known].filter((name) => !called.has(name))
console.log(JSON.stringify(told))
