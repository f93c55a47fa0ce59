// What the document says of `?wait=` is what is taken.

import { expect, test } from "vitest";
import { isAwaited, waitFault, waitMsOf } from "../../../src/central/api/proof-wait.ts";
import { optionalWaitParameter, waitParameter } from "../../../src/wire/customer/proof.ts";

const asked = (seconds: unknown): URLSearchParams => new URLSearchParams({ wait: String(seconds) });

test.each([
  ["of a clear", waitParameter],
  ["of a mark", optionalWaitParameter],
])("the bounds %s are those of the document, and nothing beyond them is taken", (_of, told) => {
  const { minimum, maximum } = Object(told.schema);
  expect([minimum, maximum]).toEqual([expect.any(Number), expect.any(Number)]);
  for (const seconds of [minimum, minimum + 0.5, maximum]) {
    expect(waitMsOf(asked(seconds))).toBe(seconds * 1_000);
    expect(waitFault(asked(seconds))).toBeUndefined();
  }
  for (const seconds of [minimum - 1, minimum - 0.001, maximum + 0.001, maximum + 1]) {
    expect(waitMsOf(asked(seconds))).toBeUndefined();
    expect(waitFault(asked(seconds))).toMatchObject({
      problem: {
        errors: [{ path: "?wait", message: `must be ${minimum} to ${maximum} seconds` }],
      },
    });
  }
});

test("who says nothing waits for as long as the document says", () => {
  expect(waitMsOf(new URLSearchParams())).toBe(Object(waitParameter.schema).default * 1_000);
});

test.each(["", "soon", "1e1", "+1", "0x1", "1.", ".5", "1.0001", " 1"])(
  "%j is no number of seconds",
  (text) => {
    expect(waitMsOf(asked(text))).toBeUndefined();
  },
);

const site = 7;
const open = { instance_id: "open", isOpen: true };
const told = { instance_id: "told", isOpen: false };

test.each<{
  readonly what: string;
  readonly live?: readonly string[];
  readonly expected?: readonly string[];
  readonly instances: readonly { readonly instance_id: string; readonly isOpen: boolean }[];
  readonly awaited: boolean;
}>([
  { what: "nobody is connected", instances: [open], awaited: false },
  {
    what: "one is connected and has told",
    live: ["told"],
    instances: [open, told],
    awaited: false,
  },
  { what: "one is connected and has not", live: ["open"], instances: [open, told], awaited: true },
  { what: "one is between two channels", expected: ["open"], instances: [open], awaited: true },
  {
    what: "one between two channels has told",
    expected: ["told"],
    instances: [told],
    awaited: false,
  },
  { what: "one is new and connected", live: ["new"], instances: [open], awaited: true },
  { what: "one is new and between two channels", expected: ["new"], instances: [], awaited: true },
])("of a deployment where $what: awaited is $awaited", ({ live, expected, instances, awaited }) => {
  const among = (names: readonly string[] = [], instance?: string): boolean =>
    instance === undefined ? names.length > 0 : names.includes(instance);
  const links = {
    isLive: (_site: number, instance?: string) => among(live, instance),
    isExpected: (_site: number, instance?: string) => among(expected, instance),
  };
  const deployment = { deployment_site_id: site, instances };
  expect(isAwaited(deployment, ({ isOpen }) => isOpen, links)).toBe(awaited);
});
