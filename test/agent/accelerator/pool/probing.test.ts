// What a worker finds when it looks at a file of a staged version: a bad sector is the disk's fault, and not the version's.

import { expect, test } from "vitest";
import { answerProbes } from "../../../../src/agent/accelerator/pool/probing.ts";
import type { HostTable } from "../../../../src/agent/accelerator/pool/host-table.ts";

const host = "www.example.com";

/** A table with one host, whose only file cannot be read for this reason. */
function tableFailingWith(code: string): HostTable {
  const file = {
    size: 4,
    digest: "0".repeat(64),
    body: async () => {
      throw Object.assign(new Error(`${code}: read`), { code });
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
  const routes = { redirect: () => undefined, cache: () => undefined };
  const compiled = { site: { index: [] }, files: { find: async () => file }, routes };
  const route = () => ({ kind: "served", host: { name: host }, compiled });
  return { route } as unknown as HostTable;
}

test.each([
  ["EIO", { kind: "damaged" }],
  ["EMFILE", { kind: "failed", reason: "EMFILE: read" }],
])("a file whose reading fails with %s", async (code, answer) => {
  const probes = [{ host, path: "index.html" }];
  expect(await answerProbes(tableFailingWith(code), probes)).toEqual([answer]);
});
