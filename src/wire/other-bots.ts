// What is said of bots in counts of unreviewed bots that no crawler's description says. It is apart from the channel's
// messages, for those who count have no use of their schemas.

/** The unreviewed bot that stands for what was counted, but not by name. */
export const otherBots = Object.freeze({
  name: "other",
  description: "Further bots, which are not counted by name.",
});

/** The description of bots that are not what they claim to be. Central knows them by it, so it never changes. */
export const fakeDescription =
  "A fake: from none of the addresses that the VIP list has of this bot.";
