// What the form of a picture changes of a response's head.

import { taggedFields } from "../http/form-tag.ts";
import type { Field } from "../http/http-fields.ts";
import { readImageForm, type ImageForm } from "./image-form.ts";

/** Returns the head of the form; `fields` are those of the original. */
export function imageFields(fields: readonly Field[], form: ImageForm): readonly Field[] {
  const { format = "same" } = readImageForm(form) ?? {};
  const own = taggedFields(fields, form);
  if (format === "same") return own;
  return own.map(([name, value]): Field =>
    name.toLowerCase() === "content-type" ? [name, `image/${format}`] : [name, value],
  );
}
