import { Empty } from "../../ui/states";

export default function QueryPage() {
  return <div class="page"><div class="title"><h1>Query</h1></div><Empty icon="query" title="Nothing here yet" /></div>;
}
