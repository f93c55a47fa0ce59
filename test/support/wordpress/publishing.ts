// What an editor changes, and how long until all readers see it: each change has to be seen by every one of them, in pages that they have just had.

import { expect } from "vitest";
import type { Visitor } from "./scene.ts";
import type { WordPress } from "./wordpress.ts";

/** Much less than the lifetime of a page: what is seen within it was cleared. */
const seenWithinMs = 60_000;

export type Delay = { readonly what: string; readonly ms: number };

/**
 * Publishes a post, changes it, takes it back, and comments on another one. Each `ms` runs from the answer to the
 * change until every reader's page shows it.
 */
export async function publishAll(
  wordpress: WordPress,
  editor: Visitor,
  commenter: Visitor,
  readers: readonly Visitor[],
): Promise<readonly Delay[]> {
  const delays: Delay[] = [];
  const see = async (what: string, path: string, text: string, isThere = true): Promise<void> => {
    const start = performance.now();
    for (;;) {
      const answers = await Promise.all(readers.map((reader) => reader.get(path)));
      if (answers.every(({ body }) => body.toString().includes(text) === isThere)) break;
      if (performance.now() - start > seenWithinMs)
        throw new Error(`${what} is not seen in ${path} after ${seenWithinMs} ms`);
    }
    delays.push({ what: `${what}, ${path}`, ms: performance.now() - start });
  };
  const nonce = await editor.nonce();
  const send = async (path: string, body: unknown, status: number): Promise<unknown> => {
    const answer = await editor.sendJson(`/wp-json/wp/v2/posts${path}`, body, nonce);
    expect(answer.status).toBe(status);
    return JSON.parse(answer.body.toString());
  };
  for (const path of ["/", "/feed/", "/post-5/"]) await see("before", path, "</");
  const news = { title: "Breaking news", slug: "breaking", status: "publish" };
  const { id } = Object(await send("", { ...news, content: "first words" }, 201));
  await see("published", "/", "Breaking news");
  await see("published", "/breaking/", "first words");
  await see("published", "/feed/", "Breaking news");
  for (const word of ["second", "third", "fourth"]) {
    await send(`/${id}`, { content: `${word} words` }, 200);
    await see("changed", "/breaking/", `${word} words`);
  }
  await send(`/${id}`, { title: "Broken news" }, 200);
  await see("renamed", "/", "Broken news");
  await send(`/${id}`, { status: "draft" }, 200);
  await see("taken back", "/", "Broken news", false);
  await see("taken back", "/breaking/", "fourth words", false);
  await comment(wordpress, commenter, "post-5", "A second opinion");
  await see("commented", "/post-5/", "A second opinion");
  return delays;
}

/** By the form, with the box ticked that has WordPress remember the name. */
export async function comment(
  wordpress: WordPress,
  commenter: Visitor,
  post: string,
  text: string,
): Promise<void> {
  const answer = await commenter.post("/wp-comments-post.php", {
    comment: text,
    author: "Someone",
    email: `canary-${commenter.name}-mail@example.com`,
    url: "",
    "wp-comment-cookies-consent": "yes",
    comment_post_ID: wordpress.php(`echo get_page_by_path('${post}', OBJECT, 'post')->ID;`),
    comment_parent: "0",
  });
  expect(answer.status).toBe(302);
}
