// The order of a list that may also be read from its end: `?order=newest`.

import type { QueryParameter } from "../../../wire/customer/operation.ts";
import { invalid, type ProblemAnswer } from "./answer.ts";

export const orderParameter: QueryParameter = {
  schema: { type: "string", enum: ["oldest", "newest"], default: "oldest" },
  description:
    "Which come first. With `newest`, `after` leads on to older ones, and 0 stands for the newest.",
};

/** Returns whether the newest come first, or what is wrong with the parameter. */
export function isNewestFirst(query: URLSearchParams): boolean | ProblemAnswer {
  const order = query.get("order");
  if (order === null || order === "oldest") return false;
  return order === "newest" || invalid([{ path: "?order", message: "must be oldest or newest" }]);
}
