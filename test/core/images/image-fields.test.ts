// The head of a form: its own type and tag, and nothing of the bytes of the original.

import { expect, it } from "vitest";
import { imageFields } from "../../../src/core/images/image-fields.ts";

const original = [
  ["content-type", "image/jpeg"],
  ["ETag", '"a"'],
  ["Content-MD5", "x"],
  ["Repr-Digest", "x"],
  ["Accept-Ranges", "bytes"],
  ["Last-Modified", "Mon, 01 Jan 2029 00:00:00 GMT"],
  ["Content-Disposition", 'inline; filename="a.jpg"'],
  ["X-Content-Type-Options", "nosniff"],
] as const;
const rest = original.slice(5);

it.each([
  ["avif", "image/avif"],
  ["webp-640", "image/webp"],
  ["same-640", "image/jpeg"],
] as const)("%s is %s", (form, type) => {
  expect(imageFields(original, form)).toEqual([
    ["content-type", type],
    ["ETag", `"a-${form}"`],
    ...rest,
  ]);
});

it("a weak tag stays weak, and names the form: these are other bytes of another type", () => {
  expect(imageFields([["ETag", 'W/"a"']], "avif")).toEqual([["ETag", 'W/"a-avif"']]);
});
