// The row for further bots in counts of unreviewed bots. It is apart from the channel's messages, for those who
// count have no use of their schemas.

/** The unreviewed bot that stands for what was counted, but not by name. */
export const otherBots = Object.freeze({
  name: "other",
  description: "Further bots, which are not counted by name.",
});
