// Elasticsearch's own client for JavaScript, with its helpers. It prints one line for each thing that holds, and
// fails at the first that does not. Argument: the address of the server.

import { strict as assert } from 'node:assert'
import { Client, errors } from '@elastic/elasticsearch'

const client = new Client({ node: process.argv[2] })
const index = 'peer'
const holds = (what) => console.log(what)

async function * documents () {
  for (let number = 0; number < 1000; number++) {
    yield { id: String(number), title: number % 10 ? 'another fox' : 'a red fox' }
  }
}

async function bulk () {
  await client.indices.create({ index, mappings: { properties: { size: { type: 'integer' } } } })
  const done = await client.helpers.bulk({
    datasource: documents(),
    flushBytes: 10000,
    refreshOnCompletion: index,
    onDocument: (document) => ({ create: { _index: index, _id: document.id } }),
    onDrop: (dropped) => assert.fail(JSON.stringify(dropped))
  })
  assert.deepEqual([done.total, done.successful, done.failed, done.retry], [1000, 1000, 0, 0])
  holds('documents are created in bulk')
  const dropped = []
  const some = await client.helpers.bulk({
    datasource: [{ size: 1 }, { size: 'no number' }],
    onDocument: () => ({ index: { _index: index } }),
    onDrop: (one) => dropped.push(one.error.type)
  })
  assert.deepEqual([some.successful, some.failed, dropped], [1, 1, ['document_parsing_exception']])
  holds('a document that does not fit is dropped')
  const changed = await client.helpers.bulk({
    datasource: [{ id: '1' }, { id: 'new' }],
    refreshOnCompletion: index,
    onDocument: (one) => [{ update: { _index: index, _id: one.id } }, { doc_as_upsert: true }]
  })
  assert.equal(changed.successful, 2)
  holds('documents are updated or made')
}

async function reading () {
  const query = { match: { title: 'red' } }
  assert.equal((await client.helpers.search({ index, query, size: 20 })).length, 20)
  holds('a search gives documents')
  let pages = 0
  let found = 0
  for await (const page of client.helpers.scrollSearch({ index, query, size: 30 })) {
    pages += 1
    found += page.documents.length
  }
  assert.deepEqual([pages, found], [4, 100])
  for await (const page of client.helpers.scrollSearch({ index, query, size: 30 })) {
    await page.clear()
  }
  holds('a scroll goes to its end, or ends early')
  const searches = client.helpers.msearch({ operations: 5 })
  const many = [...Array(12)].map(() => searches.search({ index }, { query }))
  for (const answer of await Promise.all(many)) {
    assert.equal(answer.body.hits.total.value, 100)
  }
  await assert.rejects(searches.search({ index }, { query: { none: {} } }), errors.ResponseError)
  searches.stop()
  holds('several searches go in one request')
}

async function refusals () {
  await assert.rejects(client.helpers.esql({ query: 'FROM peer' }).toRecords(), /ES\|QL is not supported/)
  await assert.rejects(client.sql.query({ query: 'SELECT 1' }), /SQL is not supported/)
  holds('what is not offered says so')
}

await bulk()
await reading()
await refusals()
await client.indices.delete({ index })
await client.close()
