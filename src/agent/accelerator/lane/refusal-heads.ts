// The answers to visitors who are blocked, or ask too often. They differ in the id of the decision alone, so the rest is made once for each reason, or for each time
// to wait.

import { flatHead } from "../doors/answer.ts";
import { Http2Head } from "../doors/http2-head.ts";
import { dateLine, headText } from "../doors/head-text.ts";
import type { PlainAnswer } from "../plain-answer.ts";
import type { QuickAnswer } from "./quick-answer.ts";

/** An answer before and behind the id of its decision. */
type Template = Pick<QuickAnswer, "status" | "cache"> & {
  readonly before: string;
  readonly behind: string;
  /** Names and values in turn, and the place of the id. */
  readonly fields: readonly string[];
  readonly idAt: number;
  /** One character a byte. */
  readonly body: string;
};

/** Stands where an id will. */
const anyId = "any-decision";
/**
 * The most that is kept of each kind. Reasons are few; each may be said with each number of seconds of HSTS that sites have. Times to wait may be
 * many, up to a day: they are kept apart, and push out each other alone.
 */
const keptMax = 256;

type Made = Pick<QuickAnswer, "status" | "cache" | "head" | "http2"> & { readonly body: string };

export class RefusalHeads {
  readonly #kept = { blocked: new Map<string, Template>(), limited: new Map<string, Template>() };

  /** `name` tells answers of a kind apart that differ in more than the id. `hstsS` are the seconds of HSTS that this visitor is told; 0: none. */
  make(
    kind: "blocked" | "limited",
    name: string,
    answered: (decisionId: string) => PlainAnswer,
    {
      decisionId,
      hstsS,
      nowMs,
    }: { readonly decisionId: string; readonly hstsS: number; readonly nowMs: number },
  ): Made {
    const kept = this.#kept[kind];
    const whole = `${hstsS} ${name}`;
    const template = kept.get(whole) ?? keep(kept, whole, makeTemplate(answered(anyId), hstsS));
    const { before, behind, fields, idAt, status, cache, body } = template;
    const head = `${before}${decisionId}${behind}${dateLine(nowMs)}`;
    const http2 = new Http2Head(status, fields.with(idAt, decisionId));
    return { status, cache, head, body, http2 };
  }
}

function makeTemplate(
  { status, cache, fields: said, body: text }: PlainAnswer,
  hstsS: number,
): Template {
  const fields = flatHead(said, hstsS);
  const [before = "", behind = ""] = headText(status, fields).split(anyId);
  // The texts are Unicode: they go out as bytes.
  const body = Buffer.from(text).toString("latin1");
  return { before, behind, fields, idAt: fields.indexOf(anyId), status, cache, body };
}

function keep(kept: Map<string, Template>, name: string, template: Template): Template {
  if (kept.size >= keptMax) kept.clear();
  kept.set(name, template);
  return template;
}
