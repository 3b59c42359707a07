"""The mqadmin commands that reach a name server, in the order in which they are run.

A command line names `{cluster}`, `{broker}` (its name), `{master}` (its address) and `{folder}`; all else is
literal. `{side}` tells the two name servers' topics and groups apart where the brokers, which serve both, keep
what a command does. Reading commands follow those that change something, so that what was changed is seen."""

from msgspec import Struct

V5 = ("5.5.0",)
ALL = (*V5, "4.9.7", "4.9.8")


class Case(Struct, frozen=True):
    """One command line, and the releases of mqadmin that know it; a `single` one needs a JVM of its own."""

    line: str
    versions: tuple[str, ...] = ALL
    single: bool = False

    @property
    def command(self) -> str:
        return self.line.split()[0]


PATIENT = frozenset(
    {
        "brokerStatus",
        "clusterList",
        "consumerConnection",
        "consumerProgress",
        "consumerStatus",
        "haStatus",
        "producerConnection",
        "queryMsgByKey",
        "statsAll",
        "topicRoute",
        "topicStatus",
    }
)
"""They print what brokers have counted, indexed, received or registered, which they report only after a while."""
CASES = [
    # clusters and brokers
    Case("clusterList"),
    Case("clusterList -c {cluster}", V5),
    Case("clusterList -m"),
    Case("clusterList -c NoSuchCluster", V5),
    Case("brokerStatus -b {master}"),
    Case("brokerStatus -c {cluster}"),
    Case("getBrokerConfig -c {cluster}"),
    Case("getBrokerConfig -b {master}"),
    Case("haStatus -c {cluster}", V5),
    Case("haStatus -b {master}", V5),
    # write permission, before anything is deleted: a broker of 4.9 tells of that with its next registration, at any
    # moment of the next 30 s, and what is registered has all its permissions again
    Case("wipeWritePerm -b {broker}"),
    Case("topicRoute -t Watched-{version}"),
    Case("addWritePerm -b {broker}"),
    Case("topicRoute -t Watched-{version}"),
    Case("wipeWritePerm -b no-such-broker"),
    Case("addWritePerm -b no-such-broker"),
    # topics
    Case("updateTopic -c {cluster} -t TopicA-{version}-{side} -r 4 -w 4"),
    Case("updateTopic -c NoSuchCluster -t TopicA-{version}-{side} -r 4 -w 4"),
    Case("updateTopic -b {master} -t TopicB-{version}-{side} -r 2 -w 3 -p 6"),
    Case("updateTopic -b {master} -t Ordered-{version}-{side} -r 2 -w 2 -o true"),
    Case("updateOrderConf -t Ordered-{version}-{side} -m get"),
    Case("topicList"),
    Case("topicList -c"),
    Case("topicRoute -t TopicA-{version}-{side}"),
    Case("topicRoute -t TopicA-{version}-{side} -l"),
    Case("topicRoute -t TopicB-{version}-{side}"),
    Case("topicRoute -t Ordered-{version}-{side}"),
    Case("topicRoute -t NoSuchTopic"),
    Case("topicClusterList -t TopicA-{version}-{side}"),
    Case("topicClusterList -t NoSuchTopic"),
    Case("sendMessage -t TopicA-{version}-{side} -b {broker} -i 1 -p hello -k key1", single=True),
    Case("topicStatus -t TopicA-{version}-{side}"),
    Case("topicStatus -t NoSuchTopic"),
    Case("queryMsgByKey -t TopicA-{version}-{side} -k key1"),
    Case("queryMsgByKey -t NoSuchTopic -k key1"),
    Case("allocateMQ -t Watched-{version} -i 10.0.0.1,10.0.0.2"),
    Case("allocateMQ -t NoSuchTopic -i 10.0.0.1"),
    Case("updateTopicPerm -c {cluster} -t TopicA-{version}-{side} -p 4"),
    Case("topicRoute -t TopicA-{version}-{side}"),
    Case("updateTopicPerm -b {master} -t TopicA-{version}-{side} -p 6"),
    Case("updateTopicPerm -c {cluster} -t NoSuchTopic -p 4"),
    Case("topicRoute -t TopicA-{version}-{side}"),
    Case("statsAll -a"),
    Case("statsAll -a -t TopicA-{version}-{side}"),
    Case("statsAll"),
    Case("deleteTopic -c {cluster} -t TopicB-{version}-{side}"),
    Case("deleteTopic -c NoSuchCluster -t TopicA-{version}-{side}"),
    Case("topicRoute -t TopicB-{version}-{side}"),
    Case("topicRoute -t TopicA-{version}-{side}"),
    Case("deleteTopic -c {cluster} -t TopicA-{version}-{side}"),
    Case("topicRoute -t TopicA-{version}-{side}"),
    Case("topicList"),
    # order topics and KV config
    Case("updateOrderConf -t TopicC-{version} -m put -v {broker}:2"),
    Case("updateOrderConf -t TopicC-{version} -m get"),
    Case("updateOrderConf -t TopicC-{version} -m delete"),
    Case("updateOrderConf -t TopicC-{version} -m get"),
    Case("updateOrderConf -t TopicC-{version} -m other"),
    Case("updateKvConfig -s SPACE -k key -v value"),
    Case("deleteKvConfig -s SPACE -k key"),
    Case("deleteKvConfig -s SPACE -k key"),
    # name server configuration
    Case("getNamesrvConfig"),
    Case("updateNamesrvConfig -k orderMessageEnable -v true"),
    Case("topicRoute -t Ordered-{version}-{side}"),
    Case("getNamesrvConfig"),
    Case("updateNamesrvConfig -k orderMessageEnable -v false"),
    Case("updateNamesrvConfig -k noSuchKey -v 1"),
    Case("updateNamesrvConfig -k kvConfigPath -v elsewhere"),
    Case("updateNamesrvConfig -k enableTopicList -v false"),
    Case("updateNamesrvConfig -k enableTopicList -v true"),
    Case("getNamesrvConfig"),
    # groups
    Case("updateSubGroup -c {cluster} -g group-{version}-{side}"),
    Case("updateSubGroup -c NoSuchCluster -g group-{version}-{side}"),
    Case("consumerConnection -g consumers_of_Watched-{version}"),
    Case("consumerConnection -g no_such_group"),
    Case("producerConnection -g producers_of_Paced-{version} -t Paced-{version}"),
    Case("producerConnection -g no_such_group -t Paced-{version}"),
    Case("producerConnection -g no_such_group -t NoSuchTopic"),
    Case("consumerProgress -g consumers_of_Watched-{version}"),
    Case("consumerProgress -g no_such_group"),
    Case("consumerProgress"),
    Case("consumerStatus -g consumers_of_Watched-{version}"),
    Case("consumerStatus -g no_such_group"),
    Case("deleteSubGroup -c {cluster} -g group-{version}-{side}"),
    Case("deleteSubGroup -c NoSuchCluster -g group-{version}-{side}"),
    # exports and static topics
    Case("exportMetadata -c {cluster} -f {folder} -t"),
    Case("exportMetadata -c {cluster} -f {folder} -g"),
    Case("exportMetadata -c {cluster} -f {folder}"),
    Case("exportConfigs -c {cluster} -f {folder}"),
    Case("updateStaticTopic -c {cluster} -t Static-{version}-{side} -qn 4", V5),
    Case("topicRoute -t Static-{version}-{side}", V5),
    Case("remappingStaticTopic -c {cluster} -t Static-{version}-{side}", V5),
    Case("topicRoute -t Static-{version}-{side}", V5),
    # no command at all
    Case("noSuchCommand"),
    Case("help clusterList"),
]
