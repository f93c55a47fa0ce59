// `/{domain}/devlove/…`: the configuration document of a domain, one per viewset version and schema.

import { Type, type Static } from "typebox";
import { ProblemError } from "./problem.ts";
import { body, Id, open, shape } from "./shape.ts";

const example = {
  schema: "devlove/1",
  content: '{"domains":{"www.example.com":{"backend":{"urls":["https://origin.example.com"]}}}}',
};

export const DevloveFile = open(
  { id: Id, schema: Type.String(), content: Type.String() },
  { title: "DevloveFile", examples: [{ id: 31, ...example }] },
);
export type DevloveFile = Static<typeof DevloveFile>;
export const devloveFileShape = shape(DevloveFile);

/** The validator bounds the content, so that a document that is too large is told as its own error. */
const fields = {
  schema: Type.String({ maxLength: 255, description: "The identifier of the schema: devlove/1." }),
  content: Type.String({
    description: "A JSON document as a string. Its JSON Schema is served at devlove-1.schema.json.",
  }),
};
const about = { title: "DevloveFileWrite", examples: [example] };

export const devloveFileWrite = body(fields, ["id"], about);
export const devloveValidate = body(fields, [], { examples: [example] });

const DevloveWarning = open(
  {
    path: Type.String({ description: "A JSON pointer into the devlove." }),
    message: Type.String(),
  },
  { title: "DevloveWarning" },
);

const DevlovePresetRules = open(
  {
    path: Type.String({ description: "A JSON pointer into the devlove." }),
    rules: Type.Array(Type.Record(Type.String(), Type.Unknown()), {
      description: "Cache rules, as a devlove says them, in the order in which they are asked.",
    }),
  },
  { title: "DevlovePresetRules" },
);

export const DevloveVerdict = open(
  {
    status: Type.Union([Type.Literal("ok"), Type.Literal("error")]),
    payload: open({
      "devlove-valid": Type.Union([Type.Literal("True"), Type.Literal("False")]),
      errors: Type.Optional(Type.Array(ProblemError)),
      presets: Type.Optional(
        Type.Array(DevlovePresetRules, {
          description: "For a valid document with presets: the rules that the first 20 stand for.",
        }),
      ),
      warnings: Type.Optional(
        Type.Array(DevloveWarning, {
          description:
            "For a valid document, if there are any: rules under which visitors who are logged in would get the page of those who are not, or under which nobody could log in; rules that tell every visitor from the others; and `ignore_set_cookie` where nothing is said of `cookies`.",
        }),
      ),
    }),
  },
  {
    title: "DevloveVerdict",
    examples: [
      { status: "ok", payload: { "devlove-valid": "True" } },
      {
        status: "ok",
        payload: {
          "devlove-valid": "True",
          warnings: [
            {
              path: "/domains/www.example.com/cache/default/cookies/ignore/0",
              message:
                "all cookies are ignored: visitors who are logged in get the page of those who are not",
            },
          ],
        },
      },
      {
        status: "error",
        payload: {
          "devlove-valid": "False",
          errors: [{ path: "/domains", message: "is required" }],
        },
      },
    ],
  },
);
export type DevloveVerdict = Static<typeof DevloveVerdict>;
export const devloveVerdictShape = shape(DevloveVerdict);
