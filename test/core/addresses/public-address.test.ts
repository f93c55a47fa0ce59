// Where a customer's hook may lead, and which addresses mail goes to.

import { expect, test } from "vitest";
import { isMailAddress } from "../../../src/core/outgoing.ts";
import { hookUrlFault, isPublicAddress } from "../../../src/core/addresses/public-address.ts";

test.each([
  "93.184.216.34",
  "8.8.8.8",
  "2606:2800:220:1:248:1893:25c8:1946",
  "::ffff:93.184.216.34",
  "64:ff9b::5db8:d822",
])("%s is public", (address) => {
  expect(isPublicAddress(address)).toBe(true);
});

test.each([
  "127.0.0.1",
  "10.1.2.3",
  "172.16.0.1",
  "192.168.1.1",
  "100.64.0.1",
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "0.0.0.0",
  "255.255.255.255",
  "224.0.0.1",
  "198.18.0.1",
  "192.0.2.1",
  "::1",
  "::",
  "fe80::1",
  "fc00::1",
  "fd00:ec2::254",
  "ff02::1",
  "2001:db8::1",
  "::ffff:127.0.0.1",
  "::ffff:10.0.0.1",
  "::ffff:0:10.0.0.1",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
  "::7f00:1",
  "2001::1",
  "localhost",
  "",
])("%s is not", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each([
  ["https://hooks.example.com/services/T0/B0/x?y=1", undefined],
  ["http://93.184.216.34:8080/x", undefined],
  ["http://127.0.0.1/x", "private"],
  ["http://[::1]/x", "private"],
  ["http://0x7f000001/", "private"],
  ["http://2130706433/", "private"],
  ["http://127.1/", "private"],
  ["http://localhost/x", "private"],
  ["http://a.localhost./x", "private"],
  ["http://[::ffff:10.0.0.1]/x", "private"],
  ["ftp://example.com/", "http"],
  ["javascript:alert(1)", "http"],
  ["https://user:pw@example.com/", "credentials"],
  ["https://exa mple.com/", "blanks"],
  ["https://example.com/\u00e4", "beyond ASCII"],
  ["https://", "not a URL"],
  ["https://example.com:0/", "port 0"],
  [`https://example.com/${"a".repeat(2_048)}`, "at most"],
])("a hook's URL: %j", (url, fault) => {
  const found = hookUrlFault(url, false);
  if (fault === undefined) expect(found).toBeUndefined();
  else expect(found).toContain(fault);
});

test("where private ones are allowed, only the rest of the rules hold", () => {
  expect(hookUrlFault("http://127.0.0.1:9/x", true)).toBeUndefined();
  expect(hookUrlFault("http://localhost/x", true)).toBeUndefined();
  expect(hookUrlFault("https://u:p@10.0.0.1/", true)).toContain("credentials");
});

test.each(["ada@example.com", "a+b@x.org", "o'neil@sub.example.co", "x@localhost"])(
  "%s is an address",
  (text) => {
    expect(isMailAddress(text)).toBe(true);
  },
);

test.each([
  "",
  "ada",
  "a@b@c",
  "ada@example.com,bob@example.com",
  "ada@example.com\nBcc: x@y.z",
  "<ada@example.com>",
  '"a b"@example.com',
  "ada@-x.org",
  "ada@x..org",
  "ada@\u00e4.org",
  `${"a".repeat(65)}@x.org`,
  `a@${"b.".repeat(130)}c`,
])("%j is none", (text) => {
  expect(isMailAddress(text)).toBe(false);
});
