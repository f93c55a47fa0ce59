// `accel-agent why` as a person and as a script read it.

import { expect, test } from "vitest";
import { whyCommand } from "../../src/cli/agent-why.ts";
import { run, whyAnswer, withAgent } from "./command-rig.ts";

test("why, for a person", async () => {
  await withAgent(async (where) => {
    expect(await run(whyCommand, ["a.example/a", ...where])).toBe(
      [
        "http://a.example/a",
        "  a plain GET  generated, cache: miss (from the backend)",
        "  cached now: not cached",
        "  what went:",
        "    2031-05-06T07:08:10.000Z  text/html  cleared",
        "      by clear 7 (c7) at 2031-05-06T07:08:10.000Z, given by central, journal entry 12, of a.example: path:a  mime:html",
        "  clears that match it:",
        "    clear 7 (c7) at 2031-05-06T07:08:10.000Z, given by central, journal entry 12, of a.example: path:a  mime:html",
        "  clears that do not: none",
        "",
      ].join("\n"),
    );
    expect(JSON.parse(await run(whyCommand, ["a.example/a", "--json", ...where]))).toEqual(
      whyAnswer,
    );
  });
});
