// Checks and overlaps of sets as a slow search by single addresses says: nested and adjacent elements, of several bots, hosts and customers.

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { overlappingElements } from "../../../../src/central/store/bots/bot-checks.ts";
import { formatRange, type IpFamily, type IpRange } from "../../../../src/core/addresses/ip.ts";
import { openApi, type Api } from "../../api/api-harness.ts";

let api: Api;
let token: string;
let no = 0;
beforeAll(async () => {
  api = await openApi();
  token = await api.trial("checker");
});
afterAll(async () => api[Symbol.asyncDispose]());

const hosts = ["main", "sub", "other"] as const;
type Host = (typeof hosts)[number];
type Element = { readonly host: Host; readonly bot: string; readonly range: IpRange };

const windowSize = 64;
/** Small windows: one in the middle of nowhere, one at each end of the address space. */
const windowStart = (family: IpFamily, window: number): bigint => {
  const bits = family === 4 ? 32n : 128n;
  return [0n, 1n << (bits - 2n), (1n << bits) - BigInt(windowSize)][window] ?? 0n;
};
const cidr = (family: IpFamily, window: number): fc.Arbitrary<IpRange> =>
  fc.record({ at: fc.nat(windowSize - 1), power: fc.nat(6) }).map(({ at, power }) => {
    const size = 1 << power;
    const first = windowStart(family, window) + BigInt(at - (at % size));
    return { family, first, last: first + BigInt(size - 1) };
  });
const scene = fc
  .record({ family: fc.constantFrom<IpFamily>(4, 6), window: fc.nat(2) })
  .chain(({ family, window }) =>
    fc.record({
      elements: fc.array(
        fc.record({
          host: fc.constantFrom(...hosts),
          bot: fc.constantFrom("A", "B"),
          range: cidr(family, window),
        }),
        { maxLength: 24 },
      ),
      asked: cidr(family, window),
    }),
  );

function addressesOf({ first, last }: IpRange): readonly bigint[] {
  return Array.from({ length: Number(last - first) + 1 }, (_, n) => first + BigInt(n));
}
function holds(elements: readonly Element[], from: readonly Host[], asked: IpRange): boolean {
  const held = new Set(
    elements.filter(({ host }) => from.includes(host)).flatMap(({ range }) => addressesOf(range)),
  );
  return addressesOf(asked).every((address) => held.has(address));
}

type Names = Readonly<Record<Host, string>>;

/** Fresh domains that hold these elements as bad bots. */
async function lay(elements: readonly Element[]): Promise<Names> {
  const main = `c${++no}.example.com`;
  const names = { main, sub: `sub.${main}`, other: `other${no}.example.com` };
  await api.call("POST", "/domain/", { token, body: { name: names.main } });
  await api.call("POST", "/domain/", { token, body: { name: names.other } });
  await api.call("PUT", `/domain/${main}/`, { token, body: { sub_domain: { name: names.sub } } });
  for (const { host, bot, range } of elements) {
    const body = { attach_to_bot: bot, attach_to_domain: names[host] };
    const path = `/mark-as-bad-bot/${formatRange(range).replace("/", "_")}/`;
    expect((await api.call("POST", path, { token, body })).status).toBe(200);
  }
  return names;
}

test("a range is held where the elements of a host, with its main domain's, hold each address", async () => {
  await fc.assert(
    fc.asyncProperty(scene, async ({ elements, asked }) => {
      const names = await lay(elements);
      const { body } = await api.call(
        "GET",
        `/is-bad-bot/${formatRange(asked).replace("/", "_")}/`,
        { token },
      );
      const inMain = holds(elements, ["main"], asked);
      const inSub =
        holds(elements, ["sub"], asked) || (!inMain && holds(elements, ["main", "sub"], asked));
      const expected = [
        ...(inMain ? [names.main] : []),
        ...(inSub ? [names.sub] : []),
        ...(holds(elements, ["other"], asked) ? [names.other] : []),
      ].sort();
      expect(body).toMatchObject({ is_bad_bot: expected.length > 0, domains: expected });
      await api.call("DELETE", `/domain/${names.main}/`, { token });
      await api.call("DELETE", `/domain/${names.other}/`, { token });
    }),
    { numRuns: 40 },
  );
});

test("overlaps are all elements that share an address, of the host and of those above or below it", async () => {
  await fc.assert(
    fc.asyncProperty(scene, fc.nat(windowSize - 1), async ({ elements, asked }, length) => {
      const names = await lay(elements);
      // As a custom range is: it begins and ends anywhere.
      const end = asked.first + BigInt(length);
      const most = (1n << (asked.family === 4 ? 32n : 128n)) - 1n;
      const whole = { ...asked, last: end > most ? most : end };
      const domain = await api.store
        .selectFrom("domains")
        .select("id")
        .where("name", "=", names.main)
        .executeTakeFirstOrThrow();
      const host = { domainId: domain.id, main: names.main, host: names.sub };
      const found = await api.store.transaction().execute(async (tx) => {
        return overlappingElements({ tx }, host, "bad", whole, 1_000);
      });
      const expected = elements
        .filter(
          ({ host: of, range }) =>
            of !== "other" && range.first <= whole.last && range.last >= whole.first,
        )
        .map(({ host: of, bot, range }) => `${names[of]} ${bot} ${formatRange(range)}`);
      expect(
        found
          .map(({ domain: of, bot, ip_address_or_range: text }) => `${of} ${bot} ${text}`)
          .sort(),
      ).toEqual([...new Set(expected)].sort());
    }),
    { numRuns: 25 },
  );
});

test("overlaps: with a main domain those of all its sub-domains, with a sub-domain its own and its main domain's", async () => {
  const main = "kin.example.com";
  const [own, other] = [`own.${main}`, `other.${main}`];
  await api.call("POST", "/domain/", { token, body: { name: main } });
  for (const sub of [own, other])
    await api.call("PUT", `/domain/${main}/`, { token, body: { sub_domain: { name: sub } } });
  for (const host of [main, own, other]) {
    const body = { attach_to_bot: "Crawler", attach_to_domain: host };
    const { status } = await api.call("POST", "/mark-as-bad-bot/192.0.2.7/", { token, body });
    expect(status).toBe(200);
  }
  const { id: domainId } = await api.store
    .selectFrom("domains")
    .select("id")
    .where("name", "=", main)
    .executeTakeFirstOrThrow();
  const range = { family: 4, first: 0xc0_00_02_07n, last: 0xc0_00_02_07n } as const;
  const told = async (host: string): Promise<readonly string[]> =>
    api.store.transaction().execute(async (tx) => {
      const place = { domainId, main, host };
      const found = await overlappingElements({ tx }, place, "bad", range, 10);
      return found.map(({ domain }) => domain).sort();
    });
  expect(await told(main)).toEqual([main, other, own]);
  expect(await told(own)).toEqual([main, own]);
  expect(await told(other)).toEqual([main, other]);
});
