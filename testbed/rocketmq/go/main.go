// Sends a message to a topic: send NAMESRV TOPIC, where NAMESRV may be http://…, the endpoint with the list. It signs with ACCESS_KEY, SECRET_KEY and SECURITY_TOKEN of its
// environment, if they are there. Its last line is a report as that of java/Produce.java.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

type report struct {
	Sent        int    `json:"sent"`
	Failures    int    `json:"failures"`
	Ms          int64  `json:"ms"`
	LastFailure string `json:"last_failure"`
}

func send(namesrv string, topic string) error {
	where := producer.WithNameServer(primitive.NamesrvAddr{namesrv})
	if strings.HasPrefix(namesrv, "http://") {
		where = producer.WithNameServerDomain(namesrv)
	}
	options := []producer.Option{where, producer.WithRetry(0)}
	if key := os.Getenv("ACCESS_KEY"); key != "" {
		options = append(options, producer.WithCredentials(primitive.Credentials{
			AccessKey:     key,
			SecretKey:     os.Getenv("SECRET_KEY"),
			SecurityToken: os.Getenv("SECURITY_TOKEN"),
		}))
	}
	client, err := rocketmq.NewProducer(options...)
	if err != nil {
		return err
	}
	if err := client.Start(); err != nil {
		return err
	}
	defer client.Shutdown()
	_, err = client.SendSync(context.Background(), primitive.NewMessage(topic, []byte("message")))
	return err
}

func main() {
	begin := time.Now()
	result := report{Sent: 1}
	if err := send(os.Args[1], os.Args[2]); err != nil {
		result = report{Failures: 1, LastFailure: err.Error()}
	}
	result.Ms = time.Since(begin).Milliseconds()
	line, _ := json.Marshal(result)
	fmt.Println(string(line))
}
