// Ports are found before anybody listens: free ones that differ, and a reason where there is none.

import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { findPorts } from "../../../../src/agent/accelerator/pool/find-port.ts";

const host = "127.0.0.1";

test("two free ports are found, and nobody holds them afterwards", async () => {
  const found = await findPorts({ listen: { host, port: 0 }, tlsListen: { host, port: 0 } });
  expect(found.listen.port).toBeGreaterThan(0);
  expect(found.tlsListen?.port).toBeGreaterThan(0);
  expect(found.tlsListen?.port).not.toBe(found.listen.port);
  expect(await findPorts(found)).toEqual(found);
  expect((await findPorts({ listen: { host, port: 0 } })).tlsListen).toBeNull();
});

test("a port that another one holds is named, as is an address that is not of this host", async () => {
  const other = createServer();
  await new Promise<void>((listening) => other.listen(0, host, listening));
  const { port } = other.address() as AddressInfo;
  const free = { host, port: 0 };
  const taken = { code: "PORT_TAKEN", message: `${host}:${port} is in use by another process` };
  await expect(findPorts({ listen: { host, port } })).rejects.toMatchObject(taken);
  await expect(findPorts({ listen: free, tlsListen: { host, port } })).rejects.toMatchObject(taken);
  await expect(findPorts({ listen: { host: "203.0.113.7", port: 8_080 } })).rejects.toMatchObject({
    code: "ADDRESS_UNUSABLE",
    message: expect.stringContaining("cannot listen on 203.0.113.7:8080: "),
  });
  await new Promise((closed) => other.close(closed));
  expect((await findPorts({ listen: { host, port } })).listen.port).toBe(port);
});
