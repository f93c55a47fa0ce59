// Forms piece by piece: whatever the pieces are, the parts are the same; what is no form, or has heads without end, is refused before it is held.

import { expect, test } from "vitest";
import {
  FormFault,
  formBoundary,
  FormStream,
} from "../../../../src/central/api/http/form-stream.ts";

const boundary = "b0";

type Part = readonly [name: string, fileName: string | undefined, content: string];

async function read(text: string, pieceBytes: number): Promise<readonly Part[]> {
  const bytes = Buffer.from(text);
  const source = async function* () {
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  };
  const parts: Part[] = [];
  for await (const { name, fileName, content } of new FormStream(source(), boundary).parts())
    parts.push([name, fileName, Buffer.concat(await Array.fromAsync(content)).toString()]);
  return parts;
}

const part = (head: string, content: string): string =>
  `--${boundary}\r\n${head}\r\n\r\n${content}\r\n`;
const named = (rest: string): string => `Content-Disposition: form-data; ${rest}`;
const end = `--${boundary}--\r\n`;

test.each([1, 2, 7, 1_000])("the same parts in pieces of %d bytes", async (pieceBytes) => {
  const text =
    part(named('name="a"'), "first\r\n--b") +
    part(`X-Other: 1\r\n${named('name="f\\"x"; filename="w%22.whl"')}\r\nContent-Type: x/y`, "") +
    part(named("name=c"), "third");
  expect(await read(`${text}${end}and what follows`, pieceBytes)).toEqual([
    ["a", undefined, "first\r\n--b"],
    ['f"x', 'w".whl', ""],
    ["c", undefined, "third"],
  ]);
});

test("a head of a part is 8 KiB at most, with the line end before it", async () => {
  const headOf = (bytes: number): string => {
    const start = `${named('name="a"')}\r\nX-Fill: `;
    return start + "x".repeat(bytes - start.length);
  };
  expect(await read(part(headOf(8_190), "c") + end, 100)).toEqual([["a", undefined, "c"]]);
  await expect(read(part(headOf(8_191), "c") + end, 100)).rejects.toThrow("a head is too long");
});

test.each([
  ["a head", `--${boundary}\r\n${named('name="a"')}\r\nX-Fill: `],
  ["what stands before the first boundary", ""],
  ["what stands behind a boundary", `--${boundary}`],
])("%s that does not end is given up, not held", async (_what, start) => {
  const source = new FormStream(
    (async function* () {
      yield Buffer.from(start);
      for (let no = 0; ; no++) {
        if (no > 100) throw new Error("it is still being read");
        yield Buffer.alloc(1_000, "x");
      }
    })(),
    boundary,
  );
  await expect(source.parts().next()).rejects.toThrow(FormFault);
});

test.each([
  ["nothing", ""],
  ["no end", part(named('name="a"'), "c")],
  ["a part without name", part("Content-Type: x/y", "c") + end],
  ["something behind a boundary", `--${boundary}x\r\n${named('name="a"')}\r\n\r\nc\r\n${end}`],
])("a form with %s is none", async (_what, text) => {
  await expect(read(text, 10)).rejects.toThrow(FormFault);
});

test.each([
  ["multipart/form-data; boundary=b0", "b0"],
  ['Multipart/Form-Data; charset=utf-8; boundary="b 0"', "b 0"],
  ["multipart/form-data", undefined],
  ["multipart/mixed; boundary=b0", undefined],
  ["multipart/form-data; boundary=b0 x", undefined],
  [`multipart/form-data; boundary=${"b".repeat(70)}`, "b".repeat(70)],
  [`multipart/form-data; boundary=${"b".repeat(71)}`, undefined],
])("the boundary of %j", (type, expected) => {
  expect(formBoundary(type)).toBe(expected);
});
