// Arguments of commands and how a command ends.

import { expect, test } from "vitest";
import {
  columns,
  readArgs,
  describeFailure,
  exitCodeOf,
  unknownVerb,
} from "../../src/base/command.ts";
import { entryUrl } from "../../src/base/entry.ts";
import { AccelError, FAULTS, type FaultCode } from "../../src/core/faults.ts";

const options = { json: { type: "boolean" }, config: { type: "string" } } as const;

test("options and positionals are read", () => {
  const { values, positionals } = readArgs(
    ["--json", "check", "--config=/a", "192.0.2.1"],
    options,
    2,
  );
  expect({ ...values }).toEqual({ json: true, config: "/a" });
  expect(positionals).toEqual(["check", "192.0.2.1"]);
});

test.each([
  [["--jsn"], 0, "--jsn"],
  [["--config"], 0, "--config"],
  [["--json=yes"], 0, "--json"],
  [["more"], 0, "more"],
  [["one", "two"], 1, "two"],
  [["-x"], 0, "-x"],
])("%j is bad usage that names the argument", (args, positionalsMax, named) => {
  try {
    readArgs(args, options, positionalsMax);
    expect.unreachable();
  } catch (error) {
    expect(error).toBeInstanceOf(AccelError);
    expect(error).toMatchObject({ code: "USAGE", message: expect.stringContaining(named) });
  }
});

test.each([0, 2])(
  "an option that is not known is told in the same words with %i arguments",
  (max) => {
    const read = () => readArgs(["--bogus"], options, max);
    expect(read).toThrow(/^Unknown option '--bogus'$/);
  },
);

test.each([
  ["--jsno", "--json"],
  ["--cofnig=/a", "--config"],
  ["--Config", "--config"],
])("of the mistyped option %s the nearest is named", (given, meant) => {
  const read = () => readArgs([given], options);
  expect(read).toThrow(
    new AccelError("USAGE", `Unknown option '${given.split("=")[0]}'; did you mean ${meant}?`),
  );
});

test("of a mistyped option of a verb one is named that the verb takes; whoever types the beginning of one means that one", () => {
  const text = { type: "string" } as const;
  const many = { ...options, user: text, uses: text, "from-file": text, file: text };
  const verbs = { add: ["user"], enrol: ["uses"], take: ["file", "from-file"] };
  const meant = (...args: readonly string[]): string | undefined => {
    try {
      readArgs(args, many, 3, verbs);
    } catch (error) {
      return / mean (.*)\?$/.exec((error as Error).message)?.[1];
    }
    return "nothing is wrong";
  };
  expect(meant("enrol", "5", "--use", "3")).toBe("--uses");
  expect(meant("--use=3", "enrol", "5")).toBe("--uses");
  expect(meant("add", "--use", "anna")).toBe("--user");
  // What all verbs take is taken by this one, too.
  expect(meant("add", "--cofnig", "/a")).toBe("--config");
  expect(meant("add", "--conf", "/a")).toBe("--config");
  expect(meant("take", "--from", "/a")).toBe("--from-file");
  expect(meant("take", "--f", "/a")).toBeUndefined();
  expect(meant("add", "--fiel", "/a")).toBeUndefined();
});

test.each([
  ["tial", "logs tial: one of tail, backlog; did you mean tail?"],
  ["purge", "logs purge: one of tail, backlog"],
  ["", "logs : one of tail, backlog"],
  [undefined, "logs: one of tail, backlog"],
])("the word %j, which a command does not take, is told with those that it does", (given, said) => {
  expect(unknownVerb("logs", given, ["tail", "backlog"])).toMatchObject({
    code: "USAGE",
    message: said,
  });
});

test("columns are aligned", () => {
  expect(
    columns([
      ["a", "first"],
      ["long", "second"],
    ]),
  ).toBe("  a     first\n  long  second\n");
  expect(columns([])).toBe("");
});

test("usage and settings end with 2, an incomplete proof or backup with 3, everything else with 1", () => {
  // Every key of the catalog is a code.
  const codes = Object.keys(FAULTS) as FaultCode[];
  const two = codes.filter((code) => exitCodeOf(new AccelError(code, "")) === 2);
  expect(two).toEqual(["USAGE", "SETTINGS_INVALID", "SECRET_UNREADABLE", "FILE_UNUSABLE"]);
  const three = codes.filter((code) => exitCodeOf(new AccelError(code, "")) === 3);
  expect(three).toEqual(["BACKUP_NOT_WHOLE", "PROOF_INCOMPLETE", "HAND_OVER_UNSUITED"]);
  expect(exitCodeOf(new TypeError("x"))).toBe(1);
  expect(exitCodeOf("text")).toBe(1);
});

test("a fault is told with its hint, a defect with its stack", () => {
  expect(
    describeFailure("accel-agent", "run", new AccelError("PORT_TAKEN", "0.0.0.0:80 is in use")),
  ).toBe(`accel-agent: 0.0.0.0:80 is in use\n  ${FAULTS.PORT_TAKEN.hint}\n`);
  expect(describeFailure("accel-agent", "run", new TypeError("x is undefined"))).toMatch(
    /^accel-agent: TypeError: x is undefined\n {4}at .*command\.test/,
  );
  expect(describeFailure("accel-agent", "run", "text")).toBe("accel-agent: text\n");
  const usage = (hint?: string) =>
    describeFailure(
      "accel-agent",
      "run",
      new AccelError("USAGE", "no", hint === undefined ? {} : { hint }),
    );
  expect(usage()).toBe("accel-agent: no\n  See accel-agent run --help.\n");
  expect(usage("Say it otherwise.")).toBe("accel-agent: no\n  Say it otherwise.\n");
});

test("an entry lies beside its starter, in source and in dist", () => {
  expect(entryUrl("file:///a/src/agent/main.ts", "./worker").href).toBe(
    "file:///a/src/agent/worker.ts",
  );
  expect(entryUrl("file:///a/dist/main-x1.js", "./worker").href).toBe("file:///a/dist/worker.js");
});
