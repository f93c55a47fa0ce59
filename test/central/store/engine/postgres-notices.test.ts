// Notices between processes at a real PostgreSQL: who hears them, and what is said of a connection that ends.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { frameBytesMax } from "../../../../src/central/cluster/frames.ts";
import { openPostgresNotices } from "../../../../src/central/store/engine/postgres-store.ts";
import { PostgresServer, postgresBin } from "../../../support/postgres-server.ts";
import { until } from "../../../support/until.ts";

const bin = postgresBin();
const random = (): number => 0;

describe.skipIf(bin === undefined)("notices", { timeout: 60_000 }, () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start(bin ?? "");
  }, 120_000);
  afterAll(async () => server[Symbol.asyncDispose](), 60_000);

  async function listen(...channels: readonly string[]) {
    const heard: string[] = [];
    const states: string[] = [];
    const notices = await openPostgresNotices({
      place: server.place("postgres"),
      random,
      channels,
      onNotice: (text) => heard.push(text),
      onState: (state) => states.push(state),
    });
    return {
      notices,
      heard,
      states,
      [Symbol.asyncDispose]: async () => notices[Symbol.asyncDispose](),
    };
  }

  test("they are heard by whoever listens to their channel, in their order, however long they may be", async () => {
    await using one = await listen("common", "one");
    await using two = await listen("common", "two");
    const long = "x".repeat(frameBytesMax);
    await one.notices.send([
      { channel: "common", text: "first" },
      { channel: "two", text: long },
      { channel: "common", text: "last" },
    ]);
    await until("all are heard", () => one.heard.includes("last") && two.heard.includes("last"));
    expect(one.heard).toEqual(["first", "last"]);
    expect(two.heard).toEqual(["first", long, "last"]);
  });

  test("what has no connection to go by is refused, and a new connection is told", async () => {
    await using one = await listen("common");
    await using two = await listen("common");
    await server.end("immediate");
    await until("the end is told", () => one.states.length > 0 && two.states.length > 0);
    await expect(one.notices.send([{ channel: "common", text: "lost" }])).rejects.toThrow(/lost/);
    await server.begin();
    await until("both are back", () => [one, two].every(({ states }) => states.includes("back")));
    await one.notices.send([{ channel: "common", text: "after" }]);
    await until("it is heard", () => two.heard.includes("after"));
    expect(two.heard).toEqual(["after"]);
    expect(one.states.at(0)).toBe("lost");
  });

  test("a server that is away at the start is told with its place", async () => {
    await server.end();
    await expect(listen("common")).rejects.toMatchObject({ code: "STORE_UNREACHABLE" });
    await server.begin();
  });
});
