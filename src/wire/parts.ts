// The small schemas that several messages share.

import { Type } from "typebox";

export const Sha256Text = Type.Unsafe<import("../core/ids.ts").Sha256>(
  Type.String({ pattern: "^[0-9a-f]{64}$" }),
);
export const Name16Text = Type.String({ pattern: "^[0-9a-f]{16}$" });
/** Main domain or sub-domain, canonical (lower-case A-labels). */
export const HostText = Type.String({ minLength: 3, maxLength: 253 });
/** A number that counts from 1; 0 is "nothing yet". */
export const Seq = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
export const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
/** ISO 8601 in UTC with Z. */
export const Timestamp = Type.String({ maxLength: 40 });
/** A day in UTC, `YYYY-MM-DD`. */
export const Day = Type.String({ pattern: String.raw`^\d{4}-\d{2}-\d{2}$` });
/** Random id of a central store or of an agent's start. */
export const Epoch = Type.String({ pattern: "^[0-9a-f]{16,64}$" });
/** The details of an effect: numbers, texts and lists, which depend on the kind of entry. */
export const Detail = Type.Record(Type.String(), Type.Unknown());

/** The form of the random id that the agent makes at its first start. */
export const instanceIdForm = /^[!-~]{8,64}$/;
export const InstanceId = Type.String({ pattern: instanceIdForm.source });
