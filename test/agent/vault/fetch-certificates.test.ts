// Certificates that come as a blob: continued where they break off, believed when the digest is right, never more than there can be.

import { expect, test } from "vitest";
import type { GetBlob } from "../../../src/agent/link/central-client.ts";
import { fetchCertificates } from "../../../src/agent/vault/fetch-certificates.ts";
import { AccelError, codeOf } from "../../../src/core/faults.ts";
import { certificatesBytesMax } from "../../../src/wire/vault.ts";
import { sha256Of } from "../../../src/core/ids.ts";

const bytes = Buffer.from("0123456789");
const stop = new AbortController().signal;
const broken = (): never => {
  throw new AccelError("CENTRAL_UNREACHABLE", "broken");
};

/** Each answer gives so many bytes and then breaks off or ends; `ranges` false: always from the first byte. */
function central(
  answers: readonly { readonly give: number; readonly ranges?: boolean; readonly ends?: boolean }[],
) {
  const asked: number[] = [];
  const cancelled: number[] = [];
  const getBlob: GetBlob = async (_, rangeFrom) => {
    const answer = answers[asked.length] ?? broken();
    asked.push(rangeFrom);
    const from = answer.ranges === false ? 0 : rangeFrom;
    async function* chunks(): AsyncGenerator<Uint8Array> {
      if (answer.give > 0) yield bytes.subarray(from, from + answer.give);
      if (answer.ends !== true) broken();
    }
    return { from, size: bytes.length, chunks: chunks(), cancel: () => void cancelled.push(from) };
  };
  return { asked, cancelled, getBlob };
}

test.each([
  ["at once", [{ give: 10, ends: true }], [0]],
  ["in pieces", [{ give: 4 }, { give: 3 }, { give: 3, ends: true }], [0, 4, 7]],
  [
    "ended too early",
    [
      { give: 4, ends: true },
      { give: 6, ends: true },
    ],
    [0, 4],
  ],
  ["without ranges", [{ give: 4 }, { give: 10, ranges: false, ends: true }], [0, 4]],
])("%s", async (_, answers, asked) => {
  const from = central(answers);
  const got = await fetchCertificates(sha256Of(bytes), from.getBlob, stop);
  expect(Buffer.from(got).toString()).toBe(bytes.toString());
  expect([from.asked, from.cancelled.length]).toEqual([asked, asked.length]);
});

test("it is left to the caller when it gets no further, when it is another one, or when it has no end", async () => {
  const digest = sha256Of(bytes);
  const stuck = central([{ give: 4 }, { give: 0 }, { give: 6, ends: true }]);
  await expect(fetchCertificates(digest, stuck.getBlob, stop)).rejects.toMatchObject({
    code: "CENTRAL_UNREACHABLE",
  });
  expect(stuck.asked).toEqual([0, 4]);
  const other = central([{ give: 10, ends: true }]);
  await expect(
    fetchCertificates(sha256Of(Buffer.from("x")), other.getBlob, stop),
  ).rejects.toMatchObject({ code: "BLOB_MISMATCH" });
  let given = 0;
  const endless: GetBlob = async () => ({
    from: 0,
    size: undefined,
    chunks: (async function* chunks() {
      for (;;) {
        given += 2 ** 20;
        yield new Uint8Array(2 ** 20);
      }
    })(),
    cancel: () => undefined,
  });
  await expect(fetchCertificates(digest, endless, stop)).rejects.toMatchObject({
    code: "MESSAGE_INVALID",
  });
  expect(given).toBe(certificatesBytesMax + 2 ** 20);
  const gone: GetBlob = async () => {
    throw new AccelError("NOT_FOUND", "none");
  };
  expect(codeOf(await fetchCertificates(digest, gone, stop).catch((error: unknown) => error))).toBe(
    "NOT_FOUND",
  );
});
