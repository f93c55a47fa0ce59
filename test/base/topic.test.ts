// News reach those who listen, from when they begin to until they stop.

import { expect, test } from "vitest";
import { Topic } from "../../src/base/topic.ts";

test("each listener hears of what is told while it follows, in the order in which they came", () => {
  const topic = new Topic<number>();
  const heard: string[] = [];
  topic.tell(1);
  using _first = topic.follow((news) => heard.push(`first ${news}`));
  {
    using _second = topic.follow((news) => heard.push(`second ${news}`));
    topic.tell(2);
  }
  topic.tell(3);
  expect(heard).toEqual(["first 2", "second 2", "first 3"]);
});
