// The keys of the bucket: what is refused, with its key and reason, and that the secret is never shown.

import { expect, test } from "vitest";
import { readSettings } from "../../src/base/settings.ts";
import { bucketPlace, objectsText } from "../../src/central/objects-opening.ts";
import { centralFields } from "../../src/central/settings/fields.ts";
import { objectsYaml } from "../support/objects-central.ts";
import { tempDir } from "../support/temp-dir.ts";

const read = (yaml: string) => readSettings(centralFields, yaml);
const settingsOf = (yaml: string) => {
  const outcome = read(yaml);
  if (!outcome.ok) throw new TypeError(JSON.stringify(outcome.errors));
  return outcome.settings;
};

test("without a bucket there is none; a bucket alone is Amazon's, with the keys that the SDK finds", () => {
  expect(bucketPlace(settingsOf(""))).toBeUndefined();
  expect(objectsText(settingsOf(""))).toBe("/var/lib/accel-central");
  const settings = settingsOf("objects: {s3: {bucket: accel, region: eu-central-1}}");
  expect(bucketPlace(settings)).toEqual({
    bucket: "accel",
    prefix: "accel-central/",
    endpoint: undefined,
    region: "eu-central-1",
    pathStyle: false,
    ca: undefined,
    accessKey: undefined,
  });
  expect(objectsText(settings)).toBe("s3://accel/accel-central/ at Amazon's eu-central-1");
});

test("the access key is read when it is asked for, and stands in nothing that is shown", () => {
  using dir = tempDir();
  const settings = settingsOf(objectsYaml(dir.path, 9));
  const place = bucketPlace(settings);
  expect(place?.accessKey?.()).toMatchObject({ id: "AKIDEXAMPLE", secret: "s3-secret" });
  expect(JSON.stringify([settings, place, objectsText(settings)])).not.toMatch(/s3-secret|AKID/);
});

const bucket = "bucket: accel, ";

test.each([
  ["{s3: {bucket: A_B}}", "objects.s3.bucket", "must be the name of a bucket"],
  ["{s3: {endpoint: https://s3.example.com}}", "objects.s3.endpoint", "needs `objects.s3.bucket`"],
  [`{s3: {${bucket}endpoint: "http://s3.example.com"}}`, "objects.s3.endpoint", "must be https"],
  [`{s3: {${bucket}endpoint: s3.example.com}}`, "objects.s3.endpoint", "must be an http or https"],
  [`{s3: {${bucket}prefix: central}}`, "objects.s3.prefix", "each with a slash behind it"],
  [`{s3: {${bucket}prefix: /central/}}`, "objects.s3.prefix", "each with a slash behind it"],
  [`{s3: {${bucket}access_key_file: /x}}`, "objects.s3.access_key_file", "secret_key_file"],
  [`{s3: {${bucket}secret_key_file: /x}}`, "objects.s3.secret_key_file", "access_key_file"],
  ["{s3: {ca_file: /x}}", "objects.s3.ca_file", "needs `objects.s3.bucket`"],
  ["{delete_after: 1h}", "objects.delete_after", "from 1d"],
])("objects: %s is refused", (yaml, key, words) => {
  expect(read(`objects: ${yaml}\n`)).toMatchObject({
    ok: false,
    errors: [{ key, message: expect.stringContaining(words) }],
  });
});

test.each(["http://127.0.0.1:9000", "http://[::1]:9000", "http://localhost:9000", "https://s3"])(
  "%s will do",
  (endpoint) => {
    expect(read(`objects: {s3: {${bucket}endpoint: "${endpoint}"}}\n`).ok).toBe(true);
  },
);
