// Messages of central: which kinds there are and who gets them, the channels of alerts, and the alerts themselves.

import type { JSX } from "preact";
import { AlertList } from "../parts/alert-list.tsx";
import { ChatChannels, EmailChannels } from "../parts/channels.tsx";
import { Subscriptions } from "../parts/subscriptions.tsx";
import { useMayForAll } from "../session.ts";

export function NotificationsPage(): JSX.Element {
  const mayWrite = useMayForAll("write");
  return (
    <>
      <h1>Notifications</h1>
      <AlertList />
      <Subscriptions mayWrite={mayWrite} />
      {mayWrite && (
        <>
          <ChatChannels />
          <EmailChannels />
        </>
      )}
    </>
  );
}
