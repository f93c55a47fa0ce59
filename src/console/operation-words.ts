// What the audit trail calls its operations, in people's words. Pure.

/** Ids of the API's operations and commands of the operator, by subject. */
const words: Readonly<Record<string, string>> = {
  clearCache: "cleared the cache",
  createDevlove: "stored a devlove",
  updateDevlove: "changed a devlove",
  activateViewset: "activated a version",
  importViewset: "imported a version",
  markAsBadBot: "marked an address as a bad bot's",
  removeFromBadBots: "took an address off the bad bots",
  markAsVipBot: "marked an address as a VIP bot's",
  removeFromVipBots: "took an address off the VIP bots",
  "bots import": "imported lists of bots",
  setBotAccessPolicy: "changed the bot access policy",
  uploadPackage: "uploaded an accelerator package",
  createDomain: "made a domain",
  updateDomain: "changed a domain",
  deleteDomain: "deleted a domain",
  unlinkDeploymentSite: "unlinked a domain from a site",
  createDeploymentSite: "made a deployment site",
  updateDeploymentSite: "changed the tags of a site",
  deleteDeploymentSite: "deleted a deployment site",
  rotateDeploymentSiteSecret: "gave a site a new secret",
  createEnrolment: "made a code for a host",
  deleteEnrolment: "revoked a code for hosts",
  "site join": "a host joined",
  "site add": "made a deployment site",
  "site enrol": "made a code for a host",
  "site revoke": "revoked a code for hosts",
  uploadCertificate: "uploaded a certificate",
  deleteCertificate: "removed a certificate",
  createSymmetricKey: "made a symmetric key",
  updateSymmetricKey: "bound a symmetric key to another site",
  createToken: "made a token",
  deleteToken: "revoked a token",
  createSession: "signed in to the console",
  deleteSession: "signed out of the console",
  "token issue": "issued a token",
  "token revoke": "revoked tokens",
  startTrial: "began a trial",
  startTokenRecovery: "asked for a new token by mail",
  updateUserProfile: "changed a profile",
  "user add": "added a user",
  "user password": "set a user's password",
  "user email": "set a user's mail address",
  "user lock": "locked a user out",
  "user unlock": "let a user in again",
  "user grant": "gave a user a right",
  "user revoke": "took a right from a user",
  renameCustomer: "renamed the customer",
  deleteCustomer: "deleted the customer",
  "customer add": "added the customer",
  createChatChannel: "made a chat channel",
  updateChatChannel: "changed a chat channel",
  deleteChatChannel: "deleted a chat channel",
  testChatChannel: "sent a test to a chat channel",
  createEmailChannel: "made an e-mail channel",
  updateEmailChannel: "changed an e-mail channel",
  deleteEmailChannel: "deleted an e-mail channel",
  testEmailChannel: "sent a test to an e-mail channel",
  subscribeToEmailNotifications: "subscribed an address to mails",
  unsubscribeFromEmailNotifications: "unsubscribed an address from mails",
  subscribeToMonitorAlerts: "subscribed an address to alerts",
  unsubscribeFromMonitorAlerts: "unsubscribed an address from alerts",
  "rollout start": "began a rollout of a release",
  "rollout pause": "paused a rollout",
  "rollout resume": "went on with a rollout",
  "rollout back": "took a rollout back",
};

/** Says what an operation did. One that has no words here, such as one of a later release, is said as it is called. */
export function operationWords(operation: string): string {
  return Object.hasOwn(words, operation) ? (words[operation] ?? operation) : operation;
}

/** The operations that a filter offers: the ids, each with its words. The commands of the operator are named beside theirs. */
export function operationChoices(): readonly (readonly [operation: string, words: string])[] {
  return Object.entries(words).map(([operation, text]) => [
    operation,
    operation.includes(" ") ? `${text} (${operation})` : text,
  ]);
}
