// What a publisher should never send: wheels and forms broken in many ways, past the credentials and into the handler. None fails inside, each refusal is as
// documented, and nothing of what was refused is left.

import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { describedDocument } from "../../../../src/central/api/http/described.ts";
import { createContract } from "../../../support/api-contract.ts";
import { oddText, type OddRequest } from "../../../support/api-fuzz.ts";
import { describeOdd, openSender, type Sender } from "../../../support/api-fuzz-run.ts";
import { boundary, form, formHeaders, wheel, wheelName } from "../../../support/wheels.ts";
import { PackageRig, publisher } from "../package-rig.ts";

const requestsMin = 320;
const atOnce = 8;
const operation = "POST /upload/accel_pack/{version}/";

let rig: PackageRig;
let sender: Sender;
beforeAll(async () => {
  rig = await PackageRig.open();
  sender = openSender(rig.api.port, createContract(describedDocument()));
});
afterAll(async () => {
  sender[Symbol.dispose]();
  await rig[Symbol.asyncDispose]();
});

const bytes = (text: string): Buffer => Buffer.from(text, "latin1");

/** Some bytes changed, mostly where the ZIP directory is; cut off; or with more behind it. */
function damaged(whole: Buffer): fc.Arbitrary<Buffer> {
  const nearEnd = fc.nat({ max: 400 }).map((back) => Math.max(0, whole.length - 1 - back));
  const change = fc.tuple(
    fc.oneof(nearEnd, fc.nat({ max: whole.length - 1 })),
    fc.oneof(fc.constant(0xff), fc.constant(0), fc.nat({ max: 255 })),
  );
  const changed = fc.array(change, { minLength: 1, maxLength: 4 }).map((changes) => {
    const copy = Buffer.from(whole);
    for (const [at, value] of changes) copy[at] = value;
    return copy;
  });
  const cut = fc.nat({ max: whole.length }).map((at) => whole.subarray(0, at));
  const longer = fc.uint8Array({ maxLength: 600 }).map((more) => Buffer.concat([whole, more]));
  return fc.oneof({ weight: 5, arbitrary: changed }, { weight: 2, arbitrary: cut }, longer);
}

const head = (disposition: string): string => `--${boundary}\r\n${disposition}\r\n\r\n`;
const end = `\r\n--${boundary}--\r\n`;

/** A form around a good wheel that is none, or another than was asked for. */
function oddForm(content: Buffer, fileName: string): fc.Arbitrary<Buffer> {
  const file = `content-disposition: form-data; name="file"; filename="${fileName}"`;
  const around = (before: string, after = end): Buffer =>
    Buffer.concat([bytes(before), content, bytes(after)]);
  const part = { name: "file", fileName, content };
  const fixed = [
    Buffer.alloc(0),
    form([]),
    form([part, part]),
    form([{ ...part, content: "" }]),
    form([{ name: "other", content: "x" }, part]),
    form([{ name: "file", content }]),
    around(head(file), ""),
    around(head(file), `\r\n--${boundary}`),
    around(head(file), `\r\n--${boundary}-`),
    around(head(file), `\r\n--${boundary}x\r\n`),
    around(head(file), `\n--${boundary}--\n`),
    around(head(file).replaceAll("\r\n", "\n")),
    around(head("content-type: application/zip")),
    around(head("content-disposition: attachment")),
    around(head(`${file}; filename="b.whl"; name="x"`)),
    around(head(`${file}\r\n${"x: y\r\n".repeat(5_000)}`)),
    around(head(`content-disposition: form-data; name="${"x".repeat(20_000)}"`)),
    around(`${"\r\n--".repeat(3_000)}${head(file)}`),
    around(`--${boundary}\r\n\r\n`),
    around(`--another\r\n${file}\r\n\r\n`),
    bytes(`--${boundary}\r\n`.repeat(2_000)),
    bytes(`--${boundary}--\r\n--${boundary}--\r\n`),
    content,
  ];
  const named = oddText.map((text) =>
    form([{ ...part, fileName: text.toWellFormed().replaceAll(/[\r\n]/g, "") }]),
  );
  const raw = oddText.map((text) => around(head(`${file.slice(0, -1)}${text.toWellFormed()}"`)));
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...fixed) },
    { weight: 1, arbitrary: named },
    { weight: 1, arbitrary: raw },
    { weight: 2, arbitrary: damaged(form([part])) },
    { weight: 3, arbitrary: damaged(content).map((odd) => form([{ ...part, content: odd }])) },
  );
}

const types = [
  "multipart/form-data",
  "multipart/form-data; boundary=",
  "multipart/form-data; boundary=another",
  `multipart/form-data; boundary="${boundary}`,
  `multipart/form-data; boundary=${"x".repeat(71)}`,
  "multipart/mixed; boundary=x",
  "application/json",
  "application/zip",
] as const;

/** `no` makes a version that nobody had: what is whole by chance is taken, once. */
function oddUpload(no: number): fc.Arbitrary<OddRequest> {
  const version = `1.${no}`;
  const rarely = <T>(odd: fc.Arbitrary<T>, usual: T): fc.Arbitrary<T> =>
    fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: odd });
  const place = oddText.map((text) => encodeURIComponent(text.toWellFormed()) || "%2e");
  return fc
    .tuple(
      oddForm(wheel(version, 500), wheelName(version)),
      rarely(fc.constantFrom(...types), formHeaders["content-type"]),
      rarely(
        place.map((text) => (/^\.+$/.test(text) ? "%2e" : text)),
        version,
      ),
      rarely(fc.constantFrom("gzip", "x"), ""),
    )
    .map(([body, type, asked, coding]) => ({
      method: "POST",
      path: `/presentation-api/v1/upload/accel_pack/${asked}/`,
      headers: {
        ...publisher,
        "content-type": type,
        ...(coding !== "" && { "content-encoding": coding }),
      },
      body,
      of: operation,
    }));
}

test("broken uploads of a publisher are refused as documented", { timeout: 300_000 }, async () => {
  const statuses = new Map<number, number>();
  const upload = fc.nat({ max: 99_999 }).chain(oddUpload);
  const batch = fc.array(upload, { minLength: atOnce, maxLength: atOnce });
  const property = fc.asyncProperty(batch, async (requests) => {
    const judged = await Promise.all(requests.map(async (odd) => sender.send(odd)));
    judged.forEach(({ status, faults }, no) => {
      const odd = requests[no];
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(faults, odd && describeOdd(odd)).toEqual([]);
    });
  });
  await fc.assert(property, { numRuns: requestsMin / atOnce, endOnFailure: true });
  // The handler was reached by all but those for no path.
  expect([...statuses.keys()].filter((status) => status === 401 || status === 403)).toEqual([]);
  expect(statuses.get(400)).toBeGreaterThan(requestsMin / 2);
  expect(statuses.get(201)).toBeGreaterThan(0);
  expect(statuses.get(415)).toBeGreaterThan(0);
  // Only what was taken is there, and the next good one is.
  expect(rig.files()).toHaveLength((await rig.names()).length);
  expect((await rig.upload("2.0")).status).toBe(201);
});
