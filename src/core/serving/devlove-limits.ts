// The part of `devlove/1` that is about limits: bodies of requests, how often an address may ask, how fast answers
// are sent.

import { Type } from "typebox";
import { burstMax, ratePerSecondMax } from "../limits/request-rate.ts";
import { wholeNumber } from "../quantities.ts";
import { listSchema, methodsSchema, orUnset, section, text } from "./devlove-parts.ts";

const bodyBytesMax = 1024 ** 4; // 1 TiB.
const limitRulesMax = 16;
const rateMax = 100_000;
const windowMaxS = 86_400;
const rateBytesMin = 1_024;
const rateBytesMax = 1024 ** 3; // 1 GiB in a second: beyond it nothing is limited.

const RequestRuleSchema = section(
  {
    path: text("path_pattern", {
      description: "`*` stands for anything within a segment, `**` for anything at all.",
      examples: ["/login", "/api/**"],
    }),
    methods: methodsSchema({
      description: "The methods that count; GET includes HEAD. An empty list is all of them.",
      default: [],
      examples: [["POST"]],
    }),
    rate: Type.Integer({
      minimum: 1,
      maximum: rateMax,
      description: `How many requests one address may send in \`per_s\` seconds, again and again; ${wholeNumber(ratePerSecondMax)} a second at most.`,
      examples: [5],
    }),
    per_s: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: windowMaxS,
        description: "The seconds that `rate` is for.",
        default: 1,
        examples: [60],
      }),
    ),
    burst: orUnset(
      Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: burstMax,
          description:
            "How many requests may come at once, by an address that has not asked for some time. Without this key as many as `rate` says, 10,000 at most.",
          examples: [10],
        }),
      ),
    ),
    mode: Type.Optional(
      Type.Enum(["enforce", "monitor"], {
        description: "`monitor` lets through what is too much, and counts it.",
        default: "enforce",
        examples: ["monitor"],
      }),
    ),
  },
  { "x-check": "request_limit" },
);

const ByteRuleSchema = section({
  path: text("path_pattern", {
    description: "`*` stands for anything within a segment, `**` for anything at all.",
    examples: ["/downloads/**"],
  }),
  rate_bytes_s: Type.Integer({
    minimum: rateBytesMin,
    maximum: rateBytesMax,
    description: "Bytes of the body in a second, of each answer by itself.",
    examples: [1_048_576],
  }),
  after_bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: bodyBytesMax,
      description: "So many bytes of each body are sent as fast as the visitor takes them.",
      default: 0,
      examples: [10_485_760],
    }),
  ),
});

export const LimitsSchema = section(
  {
    body_bytes_max: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: bodyBytesMax,
        description: "The largest body of a request. A larger one is answered with 413.",
        default: 104_857_600, // 100 MiB.
        examples: [10_485_760],
      }),
    ),
    requests: listSchema(RequestRuleSchema, limitRulesMax, "", {
      description:
        "How often one address (of IPv6, one /64) may ask. Every rule that a request meets counts it; the first that it is too much for answers with 429. VIP bots are not counted.",
      default: [],
      examples: [[{ path: "/login", methods: ["POST"], rate: 5, per_s: 60 }]],
      "x-check": "request_limits",
    }),
    bytes: listSchema(ByteRuleSchema, limitRulesMax, "path", {
      description: "How fast bodies of answers are sent. The first match decides.",
      default: [],
      examples: [[{ path: "/downloads/**", rate_bytes_s: 1_048_576, after_bytes: 10_485_760 }]],
    }),
  },
  { description: "Limits of requests, and of how fast answers are sent." },
);
