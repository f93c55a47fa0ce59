// Names are judged by what they resolve to, at every connection: metadata services and the agent's own listeners are never asked.

import { createServer } from "node:http";
import type { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import {
  localAddresses,
  type OriginGuard,
  type Resolve,
} from "../../../../src/agent/accelerator/origin/origin-connector.ts";
import { ask, openEdge, openOrigin } from "../edge.ts";

/** A name server whose answers change from one question to the next. */
function resolving(...answers: readonly (readonly string[])[]): Resolve {
  let asked = 0;
  return (_name, _options, callback) => {
    const answer = answers[Math.min(asked++, answers.length - 1)] ?? [];
    const addresses = answer.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
    if (addresses.length > 0) queueMicrotask(() => callback(null, addresses));
    else queueMicrotask(() => callback(new Error("not found"), []));
  };
}

const portOf = (url: string): string => new URL(url).port;

describe("a name that resolves", () => {
  it.each([
    ["169.254.169.254"],
    ["100.100.100.200"],
    ["fe80::1"],
    ["fd00:ec2::254"],
    ["fd00:ec2::23"],
    ["::ffff:0:169.254.169.254"],
    ["::ffff:169.254.169.254"],
    ["64:ff9b::a9fe:a9fe"],
    ["0.0.0.0"],
    ["224.0.0.1"],
  ])("to %s is not asked, nor is any other address of it", async (address) => {
    await using origin = await openOrigin((_q, r) => void r.end("asked"));
    const urls = [`http://origin.example:${portOf(origin.url)}`];
    const resolve = resolving(["127.0.0.1", address]);
    await using edge = await openEdge({
      site: { backend: { urls, retries: 0 } },
      originGuard: { ownListeners: [], resolve },
    });
    const answer = await ask(edge, "/");
    expect([answer.status, answer.text.includes(address)]).toEqual([502, false]);
  });

  it("to a harmless address first is judged again at the next connection", async () => {
    await using origin = await openOrigin((_q, r) => {
      r.shouldKeepAlive = false;
      r.end("asked");
    });
    const urls = [`http://origin.example:${portOf(origin.url)}`];
    const resolve = resolving(["127.0.0.1"], ["169.254.169.254"]);
    await using edge = await openEdge({
      site: { backend: { urls, retries: 0 }, cache: { default: { bypass: true } } },
      originGuard: { ownListeners: [], resolve },
    });
    expect((await ask(edge, "/")).text).toBe("asked");
    expect((await ask(edge, "/")).status).toBe(502);
  });

  it("to this agent is not asked; another port of the same host is", async () => {
    let reached = 0;
    const admin = createServer((_q, r) => {
      reached++;
      r.end("secrets");
    });
    const { promise: listening, resolve: told } = Promise.withResolvers<void>();
    admin.listen(0, "127.0.0.1", told);
    await listening;
    await using _ = { [Symbol.asyncDispose]: async () => void admin.close() };
    const address = admin.address();
    const port = address !== null && typeof address === "object" ? address.port : 0;
    await using origin = await openOrigin((_q, r) => void r.end("well"));
    const site = (name: string, at: number | string) => ({
      backend: { urls: [`http://${name}:${at}`], retries: 0 },
    });
    const resolve = resolving(["127.0.0.1"]);
    const originGuard = { ownListeners: [{ host: "0.0.0.0", port }], resolve };
    for (const name of ["rebound.example", "localhost", "127.0.0.1", "127.1.2.3", "[::1]"]) {
      await using edge = await openEdge({ site: site(name, port), originGuard });
      expect((await ask(edge, "/metrics")).status, name).toBe(502);
    }
    expect(reached).toBe(0);
    const other = site("rebound.example", portOf(origin.url));
    await using edge = await openEdge({ site: other, originGuard });
    expect((await ask(edge, "/")).text).toBe("well");
  });

  it("to nothing is unreachable", async () => {
    await using edge = await openEdge({
      site: { backend: { urls: ["http://origin.example"], retries: 0 } },
      originGuard: { ownListeners: [], resolve: resolving([]) },
    });
    expect((await ask(edge, "/")).status).toBe(502);
  });
});

it("an address that a document should not have had is not connected to either", async () => {
  await using edge = await openEdge({
    site: { backend: { urls: ["http://169.254.169.254"], retries: 0, connect_timeout_s: 30 } },
  });
  expect((await ask(edge, "/latest/meta-data/")).status).toBe(502);
});

describe("where the host's addresses cannot be listed, as in a sandbox without netlink", () => {
  const unlisted = (): string[] => {
    throw new Error("uv_interface_addresses returned Unknown system error 97");
  };
  const ofHost = localAddresses().find((address) => !/^(?:127\.|::1$|fe80:)/.test(address));

  it("none is told, and nothing is thrown", () => {
    expect(localAddresses(unlisted as unknown as typeof networkInterfaces)).toEqual([]);
  });

  it.skipIf(ofHost === undefined)(
    "an address of this host is known by the connection (needs one beside the loopback's)",
    async () => {
      let reached = 0;
      await using own = await openOrigin((_q, r) => (reached++, r.end("secrets")), ofHost);
      await using other = await openOrigin((_q, r) => void r.end("well"), ofHost);
      const host = ofHost?.includes(":") === true ? `[${ofHost}]` : ofHost;
      const listener = { host: "::", port: Number(portOf(own.url)) };
      const originGuard: OriginGuard = {
        ownListeners: [listener],
        localAddresses: () => [],
        resolve: resolving([ofHost ?? ""]),
      };
      for (const name of [host, "rebound.example"]) {
        const to = (url: string) => ({
          backend: { urls: [`http://${name}:${portOf(url)}`], retries: 0 },
        });
        await using edge = await openEdge({ site: to(own.url), originGuard });
        expect((await ask(edge, "/metrics")).status, name).toBe(502);
        await using open = await openEdge({ site: to(other.url), originGuard });
        expect((await ask(open, "/")).text, name).toBe("well");
      }
      expect(reached).toBe(0);
    },
  );
});
