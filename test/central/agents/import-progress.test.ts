// What customers see of a running import, after breaks that its agent begins it anew behind.

import { expect, test } from "vitest";
import {
  ImportProgresses,
  type ImportProgressTold,
} from "../../../src/central/agents/import-progress.ts";

const at = (
  phase: ImportProgressTold["phase"],
  files: number,
  bytes: number,
  total = 10,
): ImportProgressTold => ({
  phase,
  files_done: files,
  files_total: total,
  bytes_done: bytes,
  bytes_total: 100 * total,
});

test.each<{
  readonly what: string;
  readonly told: readonly ImportProgressTold[];
  readonly shown: ImportProgressTold;
}>([
  {
    what: "what goes on is shown",
    told: [at("reading", 1, 100), at("reading", 4, 400)],
    shown: at("reading", 4, 400),
  },
  {
    what: "what begins anew stays where it was",
    told: [at("uploading", 7, 700), at("uploading", 2, 800)],
    shown: at("uploading", 7, 800),
  },
  {
    what: "an earlier phase is not gone back to",
    told: [at("uploading", 7, 700), at("reading", 9, 900)],
    shown: at("uploading", 7, 700),
  },
  {
    what: "the next phase begins at its beginning",
    told: [at("reading", 10, 1_000), at("uploading", 0, 0)],
    shown: at("uploading", 0, 0),
  },
  {
    what: "with fewer files than before it is done",
    told: [at("uploading", 7, 700), at("uploading", 1, 100, 5)],
    shown: at("uploading", 5, 500, 5),
  },
])("$what", ({ told, shown }) => {
  const imports = new ImportProgresses();
  for (const progress of told) imports.told({ type: "progress", import_id: "i1", ...progress });
  expect(imports.of("i1")).toEqual(shown);
  imports.over(["i1"]);
  expect(imports.of("i1")).toBeUndefined();
});
