// Origins over HTTPS: the name that is asked for in TLS is the Host of the request, certificates have to be for it, and hosts that share an origin do not
// end each other's connections.

import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import {
  createServer as createTlsServer,
  getCACertificates,
  setDefaultCACertificates,
  type TLSSocket,
} from "node:tls";
import { beforeAll, expect, it } from "vitest";
import type { SiteInput } from "../../../../src/core/serving/effective-devlove.ts";
import { effectiveDevlove } from "../../../../src/core/serving/effective-devlove.ts";
import { until } from "../../../support/until.ts";
import { makeAuthority } from "../../../support/x509.ts";
import { ask, host, openEdge, stateOf } from "../edge.ts";

const sub = `shop.${host}`;
const authority = makeAuthority();
const issued = authority.issue({ names: [host, sub, "origin.example"] });

beforeAll(() => {
  setDefaultCACertificates([...getCACertificates("default"), authority.root.pem]);
});

async function openSecureOrigin() {
  const connections: (string | false | null)[] = [];
  const server = createServer({ key: issued.key, cert: issued.chain }, (request, response) => {
    response.end(`for ${request.headers.host ?? ""}`);
  });
  server.on("secureConnection", (socket: TLSSocket) => connections.push(socket.servername));
  const { promise: listening, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await listening;
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  return {
    url: `https://127.0.0.1:${port}`,
    connections,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function openSites(site: SiteInput) {
  const edge = await openEdge();
  const devlove = { domains: { [host]: site } };
  const shared = { name: sub, share_views_and_views_dir_with_main_domain: true };
  const state = stateOf(1, site);
  const [domain] = state.domains;
  const [main] = domain?.hosts ?? [];
  if (domain === undefined || main === undefined) throw new Error("no site");
  const second = { ...main, name: sub, site: effectiveDevlove(devlove, host, shared) };
  edge.publish({ ...state, domains: [{ ...domain, hosts: [main, second] }] });
  return edge;
}

const dynamic = { default: { bypass: true } };

it("two hosts of one origin are asked by their names, each over its own connection", async () => {
  await using origin = await openSecureOrigin();
  const urls = [origin.url];
  await using edge = await openSites({ backend: { urls, retries: 0 }, cache: dynamic });
  for (let round = 0; round < 3; round++)
    for (const name of [host, sub])
      expect((await ask(edge, "/", { host: name })).text).toBe(`for ${name}`);
  expect(origin.connections).toEqual([host, sub]);
});

it("`backend.host` is the name in TLS and the Host of the request", async () => {
  await using origin = await openSecureOrigin();
  const backend = { urls: [origin.url], retries: 0, host: "origin.example:8443" };
  await using edge = await openSites({ backend, cache: dynamic });
  for (const name of [host, sub])
    expect((await ask(edge, "/", { host: name })).text).toBe("for origin.example:8443");
  expect(origin.connections).toEqual(["origin.example"]);
});

it("an origin whose certificate is for another name is not asked", async () => {
  await using origin = await openSecureOrigin();
  const backend = { urls: [origin.url], retries: 0, host: "elsewhere.example" };
  await using edge = await openSites({ backend, cache: dynamic });
  const answer = await ask(edge, "/");
  expect(answer.status).toBe(502);
  expect(origin.connections).toEqual([]);
});

it("an answer in a coding that is not known is none, and its connection is closed", async () => {
  const sockets: TLSSocket[] = [];
  const server = createTlsServer({ key: issued.key, cert: issued.chain }, (socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
    socket.once("data", () =>
      socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nbegin\r\n"),
    );
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo; // It listens on TCP.
  const urls = [`https://127.0.0.1:${port}`];
  await using edge = await openSites({ backend: { urls, retries: 0 }, cache: dynamic });
  expect((await ask(edge, "/")).status).toBe(502);
  await until("it is closed", () => sockets[0]?.destroyed === true);
  server.close();
});
