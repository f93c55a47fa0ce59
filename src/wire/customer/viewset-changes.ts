// `/active-viewset/{domain}/{viewset_id}/changes/`: what activating a version would change.

import { Type, type Static } from "typebox";
import { changeSamplesMax } from "../manifest-changes.ts";
import { Count } from "../parts.ts";
import type { QueryParameter } from "./operation.ts";
import { Id, open, shape } from "./shape.ts";

const Named = open({ id: Id, name: Type.String() });
const countOrNull = Type.Union([Count, Type.Null()]);
const textOrNull = Type.Union([Type.String(), Type.Null()]);

const Files = open({
  added: Count,
  removed: Count,
  changed: Type.Integer({
    minimum: 0,
    description: "Files whose content or media type differs.",
  }),
  same: Count,
  bytes_before: Count,
  bytes_after: Count,
  samples: Type.Array(
    open({
      path: Type.String(),
      change: Type.Union([Type.Literal("added"), Type.Literal("removed"), Type.Literal("changed")]),
      bytes_before: countOrNull,
      bytes_after: countOrNull,
    }),
    { description: `The first ${changeSamplesMax} that differ, in the order of their paths.` },
  ),
  truncated: Type.Boolean({ description: "Whether more differ than the samples show." }),
});

export const ViewsetChanges = open(
  {
    from: Type.Union([Named, Type.Null()], {
      description: "The version that it is compared with; null if none was active.",
    }),
    to: Named,
    files: Type.Union([Files, Type.Null()], {
      description:
        "Null where the files of one of the two are not known to central, because they lie in each host's own directory.",
    }),
    devlove: Type.Array(open({ schema: Type.String(), before: textOrNull, after: textOrNull }), {
      description: "The devlove files that differ, by schema; null where a version has none.",
    }),
  },
  {
    title: "ViewsetChanges",
    examples: [
      {
        from: { id: 61, name: "spring" },
        to: { id: 62, name: "summer" },
        files: {
          added: 1,
          removed: 0,
          changed: 0,
          same: 811,
          bytes_before: 45_000_000,
          bytes_after: 45_100_220,
          samples: [{ path: "sea.jpg", change: "added", bytes_before: null, bytes_after: 100_220 }],
          truncated: false,
        },
        devlove: [],
      },
    ],
  },
);
export type ViewsetChanges = Static<typeof ViewsetChanges>;
export const viewsetChangesShape = shape(ViewsetChanges);

export const viewsetChangesParameters: Readonly<Record<string, QueryParameter>> = {
  from: {
    schema: { type: "integer", minimum: 1, examples: [61] },
    description: "Id of the version to compare with; the active one where it is left out.",
  },
};
