// What is said of a bucket whose server is found under no name.

import { expect, test } from "vitest";
import { nameHint } from "../../../../src/central/store/objects/bucket-place.ts";

const place = {
  bucket: "accel",
  prefix: "accel/",
  endpoint: "https://s3.example.com" as string | undefined,
  region: "us-east-1",
  pathStyle: false,
  ca: undefined,
  accessKey: undefined,
};
const unknown = "getaddrinfo ENOTFOUND accel.s3.example.com";

test.each([
  ["a name that is unknown", place, unknown, true],
  ["a resolver that is away", place, "getaddrinfo EAI_AGAIN accel.s3.example.com", true],
  ["another reason", place, "connect ECONNREFUSED", false],
  ["a name without the bucket's", { ...place, pathStyle: true }, unknown, false],
  ["Amazon's own", { ...place, endpoint: undefined }, unknown, false],
])("%s: path_style is named where that may be it", (_, given, reason, isNamed) => {
  expect(nameHint(given, reason).includes("objects.s3.path_style: true")).toBe(isNamed);
});
