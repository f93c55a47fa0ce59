// The width in the URL of a picture: only listed ones are taken off, once, of pictures that are read.

import * as fc from "fast-check";
import { expect, it } from "vitest";
import { askedQuery, httpsUrl, parseTarget } from "../../../src/core/http/request-path.ts";
import { widthReader } from "../../../src/core/images/picture-width.ts";

const listed = widthReader({ optimize: true, widths: [320, 640] });
const read = (url: string, method = "GET", reader = listed) => {
  const target = parseTarget(url);
  if (target === undefined) throw new Error(`${url} names nothing`);
  return reader.read(target, method);
};

it.each([
  ["/a.jpg?width=640", "", 640],
  ["/a.JPEG?width=320", "", 320],
  ["/b/a.webp?v=1&width=640", "v=1", 640],
  ["/a.png?width=640&v=1&w=2", "v=1&w=2", 640],
  ["/a.avif?v=1&width=640&", "v=1&", 640],
  ["http://www.example.com/a.jpg?width=640", "", 640],
])("%s asks for the query %j in %i", (url, rawQuery, pictureWidth) => {
  expect(read(url)).toMatchObject({ rawQuery, pictureWidth });
  expect(read(url, "HEAD")).toMatchObject({ rawQuery, pictureWidth });
});

it.each([
  "/a.jpg",
  "/a.jpg?",
  "/a.jpg?width",
  "/a.jpg?width=",
  "/a.jpg?width=641",
  "/a.jpg?width=0640",
  "/a.jpg?width=640px",
  "/a.jpg?width=6.4e2",
  "/a.jpg?Width=640",
  "/a.jpg?maxwidth=640",
  "/a.jpg?%77idth=640",
  "/a.jpg?width=640&width=320",
  "/a.jpg?width=640&width=640",
  "/a.gif?width=640",
  "/a?width=640",
  "/a.jpg/?width=640",
  "/a.php/x.jpg.txt?width=640",
])("%s stays as it is", (url) => {
  expect(read(url)).toEqual(parseTarget(url));
});

it("stays in requests that change something, and where the site lists none", () => {
  const url = "/a.jpg?width=640";
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS"])
    expect(read(url, method)).toEqual(parseTarget(url));
  for (const images of [
    { optimize: false, widths: [640] },
    { optimize: true, widths: [] },
  ]) {
    const reader = widthReader(images);
    expect(read(url, "GET", reader)).toEqual(parseTarget(url));
    expect(reader.spellings({ rawPath: "/a.jpg", rawQuery: "width=640" })).toHaveLength(1);
  }
});

it("is taken off once, and told to whoever is sent elsewhere", () => {
  const words = fc.constantFrom("width=640", "width=320", "width=5", "v=1", "", "width");
  fc.assert(
    fc.property(fc.array(words, { maxLength: 4 }), (said) => {
      const once = read(`/a.jpg?${said.join("&")}`);
      expect(listed.read(once, "GET")).toEqual(once);
      const asked = new Set(askedQuery(once).split("&"));
      for (const word of said) if (word !== "") expect(asked).toContain(word);
    }),
  );
  expect(httpsUrl("a.example", read("/a.jpg?v=1&width=640"))).toBe("https://a.example/a.jpg?v=1&width=640"); // prettier-ignore
  expect(httpsUrl("a.example", read("/a.jpg?width=640"))).toBe("https://a.example/a.jpg?width=640");
});

it("a response may be stored without it, and with it from before it was listed", () => {
  expect(listed.spellings({ rawPath: "/a.jpg", rawQuery: "v=1&width=640" })).toEqual([
    { rawPath: "/a.jpg", rawQuery: "v=1", pictureWidth: 640 },
    { rawPath: "/a.jpg", rawQuery: "v=1&width=640" },
  ]);
});
