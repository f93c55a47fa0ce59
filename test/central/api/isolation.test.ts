// Two customers × every endpoint × everything that one of them has, made from the OpenAPI document: the other can neither read, change nor tell that it exists.

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { describedDocument } from "../../../src/central/api/http/described.ts";
import { createContract, type Operation } from "../../support/api-contract.ts";
import {
  bodySlots,
  bodyWith,
  examplesOf,
  makeWorld,
  missingOf,
  neutral,
  pathSlots,
  pathWith,
  querySlots,
  queryWith,
  type Slots,
  type World,
} from "../../support/api-world.ts";
import { openApi, type Api } from "./api-harness.ts";

const { operations } = createContract(describedDocument());
/** Those of a customer: the package is everybody's. */
const owned = operations.filter(
  ({ told, path }) =>
    JSON.stringify(told["security"]).startsWith('[{"Token":') && !/accel_pack/.test(path),
);
/** Not owned: addresses and versions are the world's. */
const common = new Set(["list", "range", "version", "file"]);

let api: Api;
let owner: World;
/** The other customer, made anew where it changed something. */
let stranger: World;
/** What the owner sees, first and always. */
let seen: string;
let count = 0;
const world = async (): Promise<World> => makeWorld(api, `w${(count += 1)}`);

beforeAll(async () => {
  api = await openApi({ trialsPerAddress: 1e6, trialsTotal: 1e6 });
  owner = await world();
  stranger = await world();
  seen = await viewOf(owner);
});
afterAll(async () => api[Symbol.asyncDispose]());

type Case = {
  readonly operation: Operation;
  readonly example: unknown;
  /** What of the request is the other's. */
  readonly foreign: readonly string[];
};

/** Each place of a request alone, and all of them. */
function casesOf(operation: Operation): readonly Case[] {
  const inQuery: readonly string[] =
    operation.path === "/incominglogs/" ? ["domain", "deployment_id"] : querySlots(operation);
  return examplesOf(operation).flatMap((example) => {
    const places = [
      ...new Set([...pathSlots(operation), ...bodySlots(example), ...inQuery]),
    ].filter((place) => !common.has(place));
    const each = places.length > 1 ? places.map((place) => [place]) : [];
    return places.length === 0
      ? []
      : [places, ...each].map((foreign) => ({ operation, example, foreign }));
  });
}

const cases = owned
  .flatMap((operation) => casesOf(operation))
  .map(
    (one, at) =>
      [
        `${one.operation.method} ${one.operation.path} with the other's ${one.foreign.join(", ")} (${at})`,
        one,
      ] as const,
  );

async function ask({ operation, example }: Case, token: string, slots: Slots) {
  const query =
    operation.path === "/incominglogs/"
      ? `?domain=${slots["domain"]}&deployment_id=${slots["deployment_id"]}`
      : queryWith(
          operation,
          slots,
          JSON.stringify(operation.told["parameters"]).includes('"name":"wait"')
            ? { wait: "0" }
            : {},
        );
  const body = example === undefined ? {} : { body: bodyWith(example, slots) };
  return api.call(operation.method, pathWith(operation, slots) + query, { token, ...body });
}

/** All that the owner sees. */
async function viewOf({ token, slots }: World): Promise<string> {
  const replies: string[] = [];
  for (const operation of owned.filter(({ method }) => method === "GET"))
    replies.push(
      JSON.stringify(
        (await ask({ operation, example: undefined, foreign: [] }, token, slots)).body,
      ),
    );
  const journal = await api.journal(Number(slots["deployment_site_id"]));
  // That a token was used is seen by whose it is.
  const seen = replies.join("\n").replaceAll(/"when_last_used":(?:null|"[^"]*")/g, "");
  return `${seen}\n${JSON.stringify(journal)}`;
}

/** Texts that are the world's own and were not sent. */
function secretsOf({ slots }: World, sent: Slots = {}): readonly string[] {
  const named = Object.values(sent);
  const isSecret = ([name, value]: [string, string]): boolean =>
    !common.has(name) && !/^\d+$/.test(value) && !named.some((one) => one.includes(value));
  return Object.entries(slots).flatMap((one) => (isSecret(one) ? [one[1]] : []));
}

test("there are cases of everything that a customer has", () => {
  const places = new Set(cases.flatMap(([, { foreign }]) => foreign));
  expect([...places].sort()).toEqual(
    Object.keys(owner.slots)
      .filter((name) => !common.has(name))
      .sort(),
  );
  expect(cases.length).toBeGreaterThan(90);
});

test.each(cases)("%s: as if it were not there", async (_name, one) => {
  const replies: object[] = [];
  for (const foreign of [owner.slots, missingOf(owner.slots)]) {
    const taken = Object.fromEntries(one.foreign.map((name) => [name, foreign[name] ?? ""]));
    const reply = await ask(one, stranger.token, { ...stranger.slots, ...taken });
    replies.push(neutral(reply, { ...stranger.slots, ...taken }, stranger.username));
    const told = JSON.stringify(reply.body) ?? "";
    expect(secretsOf(owner, taken).filter((value) => told.includes(value))).toEqual([]);
    const isChange = one.operation.method !== "GET" && reply.status < 300;
    if (isChange) stranger = await world();
  }
  expect(replies[0]).toEqual(replies[1]);
  if (one.operation.method !== "GET") expect(await viewOf(owner)).toBe(seen);
});

describe("lists", () => {
  const lists = owned.filter(({ method, path }) => method === "GET" && !path.includes("{"));

  test("there are some", () => {
    expect(lists.length).toBeGreaterThan(8);
  });

  test.each(lists.map((one) => [one.path, one] as const))(
    "%s holds nothing of the other",
    async (_path, operation) => {
      const own = stranger;
      const { status, body } = await ask(
        { operation, example: undefined, foreign: [] },
        own.token,
        own.slots,
      );
      expect(status).toBe(200);
      expect(secretsOf(owner).filter((value) => JSON.stringify(body).includes(value))).toEqual([]);
    },
  );
});

describe("deleting", () => {
  const deletions = owned.filter(({ method }) => method === "DELETE");
  const byCreator = [
    "/customer/{customer_id}/",
    "/deployment-site/{deployment_site_id}/",
    "/domain/{name}/",
  ];

  test("customers, deployment sites and domains are for their creators", () => {
    const told = deletions.filter(({ told: { summary } }) =>
      String(summary).includes("who created it"),
    );
    expect(told.map(({ path }) => path)).toEqual(byCreator);
  });

  test.each(byCreator)(
    "%s: 403 for another user of the customer, and nothing changes; 204 for the creator",
    async (path) => {
      const operation = deletions.find((one) => one.path === path);
      if (operation === undefined) throw new Error(`no ${path}`);
      const one = { operation, example: undefined, foreign: [] };
      const own = await world();
      const before = await viewOf(own);
      expect((await ask(one, own.mate, own.slots)).status).toBe(403);
      expect(await viewOf(own)).toBe(before);
      expect((await ask(one, own.token, own.slots)).status).toBe(204);
      expect(await viewOf(own)).not.toBe(before);
    },
  );
});

test("a profile is for its user: another user of the customer is told 403", async () => {
  const path = `/user-profile/${owner.slots["pk"]}/`;
  expect((await api.call("GET", path, { token: owner.mate })).status).toBe(403);
  expect((await api.call("PUT", path, { token: owner.mate, body: {} })).status).toBe(403);
});

test("without a token, or with an unknown one, nothing is answered but 401", async () => {
  for (const operation of owned)
    for (const token of [undefined, "nobodys"]) {
      const reply = await api.call(
        operation.method,
        pathWith(operation, owner.slots),
        token === undefined ? {} : { token },
      );
      expect([operation.path, reply.status]).toEqual([operation.path, 401]);
      // An address may send a hundred wrong tokens at once, and one a second.
      api.clock = new Date(api.clock.getTime() + 1_000);
    }
});
