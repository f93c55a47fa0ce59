// Which directories a devlove may name.

import { expect, test } from "vitest";
import { directoryDefault, directoryUrlFault } from "../../../src/core/acme/directory-url.ts";

test.each([
  [directoryDefault, undefined],
  ["https://127.0.0.1:14000/dir", undefined],
  ["http://acme.example.com/directory", "must be a URL with https://"],
  ["acme.example.com/directory", "must be a URL with https://"],
  ["https://", "is not a URL"],
  ["https://a b/", "must not contain blanks"],
  ["https://user:word@acme.example.com/", "must not contain credentials"],
  ["https://acme.example.com:0/", "must not have port 0"],
  ["https://acme.example.com/#dir", "must not have a fragment"],
])("%s", (url, fault) => {
  if (fault === undefined) expect(directoryUrlFault(url)).toBeUndefined();
  else expect(directoryUrlFault(url)).toContain(fault);
});
