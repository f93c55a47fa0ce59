// The answers to blocked visitors. They differ in the id of the decision alone, so the rest is made once for each reason.

import { flatHead } from "../doors/answer.ts";
import { Http2Head } from "../doors/http2-head.ts";
import { dateLine, headText } from "../doors/head-text.ts";
import type { JudgedVisitor } from "../judging.ts";
import { blockedAnswer } from "../plain-answer.ts";
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
/** Reasons are few; each may be said with each number of seconds of HSTS that sites have. */
const keptMax = 256;

export class BlockedHeads {
  readonly #kept = new Map<string, Template>();

  /** `hstsS` are the seconds of HSTS that this visitor is told; 0: none. */
  make(
    { verdict, decisionId }: JudgedVisitor,
    hstsS: number,
    nowMs: number,
  ): Pick<QuickAnswer, "status" | "cache" | "head" | "body" | "http2"> & { readonly body: string } {
    const name = `${hstsS} ${verdict.reason}`;
    const template = this.#kept.get(name) ?? this.#keep(name, verdict.reason, hstsS);
    const { before, behind, fields, idAt, status, cache, body } = template;
    const head = `${before}${decisionId}${behind}${dateLine(nowMs)}`;
    const http2 = new Http2Head(status, fields.with(idAt, decisionId));
    return { status, cache, head, body, http2 };
  }

  #keep(name: string, reason: JudgedVisitor["verdict"]["reason"], hstsS: number): Template {
    const { status, cache, fields: said, body: text } = blockedAnswer(reason, anyId);
    const fields = flatHead(said, hstsS);
    const [before = "", behind = ""] = headText(status, fields).split(anyId);
    // The texts are Unicode: they go out as bytes.
    const body = Buffer.from(text).toString("latin1");
    const idAt = fields.indexOf(anyId);
    const template = { before, behind, fields, idAt, status, cache, body };
    if (this.#kept.size >= keptMax) this.#kept.clear();
    this.#kept.set(name, template);
    return template;
  }
}
