// Questions to the agents of a deployment: each connected instance is asked, and whoever cannot answer is told apart.

import { expect, test } from "vitest";
import { name16, secret16, seedSite, startAgentSide } from "../../support/agent-side.ts";
import { connectAgent } from "../../support/fake-agent.ts";
import { until } from "../../support/until.ts";

const question = { domain: "www.example.test", host: null, patterns: ["path:x"] };
const never = new AbortController().signal;

async function started() {
  const side = await startAgentSide();
  const { siteId } = await seedSite(side.store);
  const agent = await connectAgent(side.url, name16, secret16);
  const connect = async (instanceId: string) => {
    const channel = await agent.channel();
    channel.hello(side.agentStore.epoch, 0, undefined, instanceId);
    await channel.next("welcome");
    return channel;
  };
  return { side, siteId, connect };
}

test("every instance is asked, and answers are told by instance", async () => {
  const { side, siteId, connect } = await started();
  await using _ = side;
  using one = await connect("instance-1");
  using two = await connect("instance-2");
  const asked = side.hub.ask(siteId, question, 5_000, never);
  const first = await one.next("ask");
  expect(first).toMatchObject({ dry_run: question, deadline_ms: 5_000 });
  const second = await two.next("ask");
  one.say({ type: "answer", id: "of nobody", matched: 9, samples: [] });
  one.say({ type: "answer", id: second.id, matched: 8, samples: [] }); // Another channel's question.
  one.say({ type: "answer", id: first.id, matched: 1, samples: [] });
  two.say({ type: "answer", id: second.id, matched: 2, samples: [], over_budget: true });
  const answers = await asked;
  expect(answers.map(({ instanceId, answer }) => [instanceId, answer?.matched])).toEqual([
    ["instance-1", 1],
    ["instance-2", 2],
  ]);
});

test("no answer by the deadline, a channel that closes and no channel at all are waited for no longer", async () => {
  const { side, siteId, connect } = await started();
  await using _ = side;
  expect(await side.hub.ask(siteId, question, 1_000, never)).toEqual([]);
  using channel = await connect("instance-1");
  const silent = { instanceId: "instance-1", answer: undefined };
  expect(await side.hub.ask(siteId, question, 30, never)).toEqual([silent]);
  expect(await side.hub.ask(siteId, question, 0, never)).toEqual([silent]);
  expect(channel.all("ask")).toHaveLength(1);
  const gone = new AbortController();
  const abandoned = side.hub.ask(siteId, question, 30_000, gone.signal);
  gone.abort();
  expect(await abandoned).toEqual([silent]);
  const cut = side.hub.ask(siteId, question, 30_000, never);
  await until("the question is there", () => channel.all("ask").length === 3);
  channel.socket.terminate();
  expect(await cut).toEqual([silent]);
});

test("a ninth question at a time is not sent to a channel", async () => {
  const { side, siteId, connect } = await started();
  await using _ = side;
  using channel = await connect("instance-1");
  const nine = Array.from({ length: 9 }, async () => side.hub.ask(siteId, question, 5_000, never));
  await until("eight are there", () => channel.all("ask").length === 8);
  expect(await nine[8]).toEqual([{ instanceId: "instance-1", answer: undefined }]);
  for (const { id } of channel.all("ask"))
    channel.say({ type: "answer", id, matched: 1, samples: [] });
  const answers = await Promise.all(nine);
  expect(answers.flat().filter(({ answer }) => answer !== undefined)).toHaveLength(8);
});
